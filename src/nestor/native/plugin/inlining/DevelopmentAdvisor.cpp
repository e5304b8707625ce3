//===- DevelopmentAdvisor.cpp - All features, and a log -------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// llvm::MLInlineAdvisor does the work that LLVM's own ML advisors share: it
// computes the features, tracks the module's growth and keeps its caches right
// when a callee goes away. Here a Decider gives the answer, and what became of it
// is written down.
//
//===----------------------------------------------------------------------===//

#include "Advisors.h"
#include "plugin/Compat.h"
#include "plugin/core/StableIDs.h"
#include "plugin/core/TensorBuffers.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Module.h"
#include <map>

using namespace llvm;

namespace nestor {

namespace {

/// Holds the buffers that MLInlineAdvisor fills. The advisor asks the policy
/// itself, since an answer needs more than features (default, site key).
class FeatureBuffers final : public TensorBuffers {
public:
  using TensorBuffers::TensorBuffers;

private:
  void *evaluateUntyped() override {
    llvm_unreachable("the advisor asks the policy itself");
  }
};

class DevelopmentAdvisor final : public MLInlineAdvisor {
public:
  DevelopmentAdvisor(const AdvisorContext &C, Decider D, SiteFeatures Own,
                     std::unique_ptr<TrajectoryLog> Log, bool WantNames)
      : MLInlineAdvisor(
            C.M, C.MAM,
            modelRunner([&C](const std::vector<TensorSpec> &Specs)
                            -> std::unique_ptr<MLModelRunner> {
              return std::make_unique<FeatureBuffers>(C.M.getContext(), Specs);
            }),
            [this](CallBase &CB) { return stockAnswer(Stock, CB); }),
        D(std::move(D)), Own(std::move(Own)),
        Stock(C.M, C.FAM, C.Params, C.IC), Log(std::move(Log)), WantNames(WantNames) {}
  ~DevelopmentAdvisor() override;

  void onPassEntry(LazyCallGraph::SCC *SCC) override {
    Own.clear();
    MLInlineAdvisor::onPassEntry(SCC);
  }
  void onPassExit(LazyCallGraph::SCC *SCC) override {
    Own.clear();
    MLInlineAdvisor::onPassExit(SCC);
  }
  void onInlined(const Function &Caller, const Function &Callee) {
    Own.onInlined(Caller, Callee);
  }
  void onRecorded(Function &Caller, const Decision &Record, Effect E);

private:
  std::unique_ptr<InlineAdvice> getAdviceImpl(CallBase &CB) override;
  std::unique_ptr<MLInlineAdvice> getMandatoryAdviceImpl(CallBase &CB) override;
  std::unique_ptr<MLInlineAdvice>
  getAdviceFromModel(CallBase &CB, OptimizationRemarkEmitter &ORE) override;
  /// The value of one of LLVM's own features.
  int64_t inTree(size_t Tensor) { return *ModelRunner->getTensor<int64_t>(Tensor); }
  void describe(CallBase &CB, Decision &Record);

  Decider D;
  SiteFeatures Own;
  DefaultInlineAdvisor Stock;
  std::unique_ptr<TrajectoryLog> Log;
  const bool WantNames;
  const size_t Features = Own.offered().size();
  uint64_t Decisions = 0, AskedAfterCap = 0;
  std::map<uint64_t, std::string> Names;
};

/// Follows a site, also one that must be inlined without a question.
class FollowedAdvice : public MLInlineAdvice {
public:
  FollowedAdvice(DevelopmentAdvisor &Owner, CallBase &CB,
                 OptimizationRemarkEmitter &ORE, bool Inline)
      : MLInlineAdvice(&Owner, CB, ORE, Inline) {}

protected:
  DevelopmentAdvisor &owner() const {
    return *static_cast<DevelopmentAdvisor *>(Advisor);
  }
  void recordInliningImpl() override {
    MLInlineAdvice::recordInliningImpl();
    owner().onInlined(*Caller, *Callee);
  }
  void recordInliningWithCalleeDeletedImpl() override {
    MLInlineAdvice::recordInliningWithCalleeDeletedImpl();
    owner().onInlined(*Caller, *Callee);
  }
};

class DevelopmentAdvice final : public FollowedAdvice {
public:
  DevelopmentAdvice(DevelopmentAdvisor &Owner, CallBase &CB,
                    OptimizationRemarkEmitter &ORE, Decision Record)
      : FollowedAdvice(Owner, CB, ORE, Record.Answer), Record(std::move(Record)) {}

private:
  void recordInliningImpl() override {
    FollowedAdvice::recordInliningImpl();
    record(Effect::Inlined);
  }
  void recordInliningWithCalleeDeletedImpl() override {
    FollowedAdvice::recordInliningWithCalleeDeletedImpl();
    record(Effect::CalleeDeleted);
  }
  void recordUnsuccessfulInliningImpl(const InlineResult &R) override {
    MLInlineAdvice::recordUnsuccessfulInliningImpl(R);
    record(Effect::Failed);
  }
  void recordUnattemptedInliningImpl() override {
    MLInlineAdvice::recordUnattemptedInliningImpl();
    record(Effect::NotTried);
  }
  void record(Effect E) { owner().onRecorded(*Caller, Record, E); }

  const Decision Record;
};

} // namespace

DevelopmentAdvisor::~DevelopmentAdvisor() {
  D.finish(M);
  if (!Log)
    return;
  json::Object Summary{
      {"decisions", Decisions},
      {"growth_cap_reached", isForcedToStop() || D.isSpent()},
      {"asked_after_growth_cap", AskedAfterCap + D.askedWhenSpent()},
      {"overrides", D.overrides()},
  };
  if (WantNames) {
    json::Object NameOf;
    for (const auto &[ID, Name] : Names)
      NameOf[utohexstr(ID, /*LowerCase=*/true, /*Width=*/16)] = Name;
    Summary["names"] = std::move(NameOf);
  }
  finish(*Log, M, std::move(Summary));
}

std::unique_ptr<InlineAdvice> DevelopmentAdvisor::getAdviceImpl(CallBase &CB) {
  if (isInlinedInItself(D, Stock, CB))
    return std::make_unique<FollowedAdvice>(*this, CB, getCallerORE(CB), true);
  if (!isForcedToStop())
    return MLInlineAdvisor::getAdviceImpl(CB);
  // The cap is a policy's: it does not bind the functions of other levels.
  if (D.hasPolicy() && !D.isCappedIn(*CB.getCaller()))
    return std::make_unique<InlineAdvice>(this, CB, getCallerORE(CB),
                                          stockAnswer(Stock, CB));
  ++AskedAfterCap;
  return MLInlineAdvisor::getAdviceImpl(CB); // "No", without a question.
}

std::unique_ptr<MLInlineAdvice>
DevelopmentAdvisor::getMandatoryAdviceImpl(CallBase &CB) {
  return std::make_unique<FollowedAdvice>(*this, CB, getCallerORE(CB), true);
}

std::unique_ptr<MLInlineAdvice>
DevelopmentAdvisor::getAdviceFromModel(CallBase &CB,
                                       OptimizationRemarkEmitter &ORE) {
  ++Decisions;
  Own.onQuestion();
  Decision Record = D.decide(
      CB, [&] { return GetDefaultAdvice(CB); },
      [&](size_t Tensor) {
        return double(SiteFeatures::has(Tensor) ? Own.read(CB, Tensor)
                                                : inTree(Tensor));
      },
      [&](Price P) { return Own.canTry(CB, P); });
  D.onInlining(CB, Record);
  if (Log)
    describe(CB, Record);
  return std::make_unique<DevelopmentAdvice>(*this, CB, ORE, std::move(Record));
}

/// Completes \p Record by what only the log needs. The callee may be gone
/// when the outcome is recorded, so this happens now.
void DevelopmentAdvisor::describe(CallBase &CB, Decision &Record) {
  for (size_t I = 0; I < Features; ++I)
    Record.Features.push_back(SiteFeatures::has(I) ? Own.readAgain(CB, I) : inTree(I));
  const Function &Caller = *CB.getCaller(), &Callee = *CB.getCalledFunction();
  Record.Caller = functionID(Caller);
  Record.Callee = functionID(Callee);
  if (WantNames) {
    Names[Record.Caller] = Caller.getName().str();
    Names[Record.Callee] = Callee.getName().str();
  }
}

void DevelopmentAdvisor::onRecorded(Function &Caller, const Decision &Record,
                                    Effect E) {
  if (E == Effect::Inlined || E == Effect::CalleeDeleted)
    D.onInlined(Caller, Record);
  if (Log)
    write(*Log, Record, E);
}

std::unique_ptr<InlineAdvisor>
createDevelopmentAdvisor(const AdvisorContext &C, Decider D, SiteFeatures Own,
                         std::unique_ptr<TrajectoryLog> Log, bool Names) {
  return std::make_unique<DevelopmentAdvisor>(C, std::move(D), std::move(Own),
                                              std::move(Log), Names);
}

} // namespace nestor
