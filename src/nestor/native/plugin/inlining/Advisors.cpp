//===- Advisors.cpp - Chooses the advisor for a compilation ---------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Advisors.h"
#include "plugin/core/LogFile.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/CommandLine.h"
#include <mutex>

using namespace llvm;

namespace nestor {

bool stockAnswer(DefaultInlineAdvisor &Stock, CallBase &CB) {
  std::unique_ptr<InlineAdvice> Advice = Stock.getAdvice(CB);
  bool Inline = Advice->isInliningRecommended();
  Advice->recordUnattemptedInlining();
  return Inline;
}

bool isInlinedInItself(const Decider &D, DefaultInlineAdvisor &Stock, CallBase &CB) {
  const bool Alone = D.isCappedIn(*CB.getCaller());
  return CB.getCaller() == CB.getCalledFunction() && !Alone && stockAnswer(Stock, CB);
}

static cl::Option *growthCap() {
  return cl::getRegisteredOptions().lookup(
      "ml-advisor-size-increase-threshold");
}

// Found out once, before the cap is lifted: thin LTO makes advisors on several
// threads.
bool isGrowthCapGiven() {
  static const bool Given = [] {
    const cl::Option *Cap = growthCap();
    return Cap && Cap->getNumOccurrences();
  }();
  return Given;
}

/// Keeps LLVM's ML advisor from stopping where the stock heuristic would not.
static void liftGrowthCap() {
  static std::once_flag Once;
  std::call_once(Once, [] {
    cl::Option *Cap = growthCap();
    if (Cap && !isGrowthCapGiven())
      Cap->addOccurrence(1, Cap->ArgStr, "1e30");
  });
}

/// What the file \p Path holds; nothing if the user named none.
template <typename File>
static Expected<std::optional<File>> load(const std::string &Path, const char *What) {
  if (Path.empty())
    return std::nullopt;
  Expected<File> Loaded = File::load(Path);
  if (!Loaded)
    return createStringError("cannot use the " + std::string(What) + " '" + Path +
                             "': " + toString(Loaded.takeError()));
  return std::move(*Loaded);
}

static Expected<SiteFeatures> createOwnFeatures(const AdvisorContext &C,
                                                const InliningSettings &S) {
  auto Program = load<ProgramSummary>(S.Program, "program summary");
  if (!Program)
    return Program.takeError();
  auto Vocabulary = load<Embeddings>(S.Vocabulary, "vocabulary");
  if (!Vocabulary)
    return Vocabulary.takeError();
  return SiteFeatures(C.MAM, C.FAM, std::move(*Program), std::move(*Vocabulary));
}

static Expected<std::unique_ptr<TrajectoryLog>>
openLogOf(const Module &M, StringRef Log, ArrayRef<TensorSpec> Features) {
  if (Log.empty())
    return nullptr;
  Expected<std::string> Path = logPath(Log, M.getModuleIdentifier());
  auto Opened = Path ? TrajectoryLog::create(*Path, logColumns(Features), M.getName())
                     : Expected<std::unique_ptr<TrajectoryLog>>(Path.takeError());
  if (!Opened)
    return createStringError("cannot write the log '" + Log.str() +
                             "': " + toString(Opened.takeError()));
  return Opened;
}

static Expected<std::unique_ptr<InlineAdvisor>> create(const AdvisorContext &C,
                                                       InliningSettings S) {
  Expected<SiteFeatures> Own = createOwnFeatures(C, S);
  if (!Own)
    return Own.takeError();
  const std::vector<TensorSpec> Offered = Own->offered();
  std::vector<size_t> Logged; // If a release advisor writes the log.
  if (!S.Log.empty() && !S.LogFor.empty()) {
    auto Read = readBy(S.LogFor, Offered);
    if (!Read)
      return Read.takeError();
    Logged = std::move(*Read);
  }
  Expected<Decider> D = Decider::create(C.M, S, Offered);
  if (D && !S.LogFor.empty() && !canRelease(*D, Logged)) {
    S.LogFor.clear(); // So all is logged.
    D = Decider::create(C.M, S, Offered);
  }
  if (!D)
    return D.takeError();
  if (D->isWithoutSummary())
    Own->dropSummary();
  const bool LogAll = !S.Log.empty() && S.LogFor.empty();
  // At once and always, so that what is estimated does not depend on what is read.
  if (LogAll || llvm::any_of(D->tensors(), SiteFeatures::needsEntries) ||
      llvm::any_of(Logged, SiteFeatures::needsEntries))
    Own->estimateEntries(C.M);
  // They take time, so there are none for a log.
  if (llvm::any_of(D->tensors(), SiteFeatures::isOfTrial))
    Own->allowTrials(C.M, S.Trials);
  std::vector<TensorSpec> Columns = Offered;
  if (!LogAll) {
    Columns.clear();
    for (size_t Tensor : Logged)
      Columns.push_back(Offered[Tensor]);
  }
  auto Log = openLogOf(C.M, S.Log, Columns);
  if (!Log)
    return Log.takeError();
  if (!LogAll && canRelease(*D, Logged))
    return createReleaseAdvisor(C, std::move(*D), std::move(*Own), std::move(*Log),
                                std::move(Logged));
  if (!D->isCapped())
    liftGrowthCap();
  return createDevelopmentAdvisor(C, std::move(*D), std::move(*Own),
                                  std::move(*Log), S.LogNames);
}

std::unique_ptr<InlineAdvisor> createAdvisor(const AdvisorContext &C,
                                             const InliningSettings &S) {
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
