//===- Advisors.cpp - Chooses the advisor for a compilation ---------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Advisors.h"
#include "llvm/Analysis/MLInlineAdvisor.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Module.h"

using namespace llvm;

namespace nestor {

bool stockAnswer(DefaultInlineAdvisor &Stock, CallBase &CB) {
  std::unique_ptr<InlineAdvice> Advice = Stock.getAdvice(CB);
  bool Inline = Advice->isInliningRecommended();
  Advice->recordUnattemptedInlining();
  return Inline;
}

static Expected<std::unique_ptr<InlineAdvisor>> create(const AdvisorContext &C,
                                                       const Settings &S) {
  const std::vector<TensorSpec> &Offered =
      MLInlineAdvisor::getInitialFeatureMap();
  Expected<Decider> D = Decider::create(C.M, S, Offered);
  if (!D)
    return D.takeError();
  if (S.Log.empty()) {
    if (auto Release = createReleaseAdvisor(C, *D))
      return Release;
    return createDevelopmentAdvisor(C, std::move(*D), nullptr, false);
  }
  auto Log = TrajectoryLog::create(S.Log, Offered, C.M.getName());
  if (!Log)
    return createStringError("cannot write the log '" + S.Log +
                             "': " + toString(Log.takeError()));
  return createDevelopmentAdvisor(C, std::move(*D), std::move(*Log),
                                  S.LogNames);
}

std::unique_ptr<InlineAdvisor> createAdvisor(const AdvisorContext &C,
                                             const Settings &S) {
  // A profile's or a sample's early inliner is another problem than this one.
  if (C.IC.Pass == InlinePass::CGSCCInliner) {
    Expected<std::unique_ptr<InlineAdvisor>> Advisor = create(C, S);
    if (Advisor)
      return std::move(*Advisor);
    C.M.getContext().emitError("nestor: " + toString(Advisor.takeError()));
  }
  return std::make_unique<DefaultInlineAdvisor>(C.M, C.FAM, C.Params, C.IC);
}

} // namespace nestor
