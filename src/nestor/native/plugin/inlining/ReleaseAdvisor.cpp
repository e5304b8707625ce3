//===- ReleaseAdvisor.cpp - Only what the policy reads --------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// LLVM's ML advisor costs 2 to 11 % of a compile before any policy is evaluated: it
// analyses each site three times, keeps properties of every function up to date
// and counts the call graph. Most policies read little of that. This advisor
// computes a feature when the policy reads it, with the same result, and gives
// up on a policy that reads a feature which needs the whole machinery.
//
// Whatever decides more than an answer is kept exactly: which sites are never
// inlined, the growth cap, and that the sizes are those of reachable blocks
// (llvm/lib/Analysis/MLInlineAdvisor.cpp; BlockCounts.h). The tests compare both
// advisors' objects over a corpus.
//
//===----------------------------------------------------------------------===//

#include "Advisors.h"
#include "BlockCounts.h"
#include "plugin/Compat.h"
#include "plugin/core/StableIDs.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Analysis/AssumptionCache.h"
#include "llvm/Analysis/InlineCost.h"
#include "llvm/Analysis/TargetTransformInfo.h"
#include "llvm/IR/Module.h"

using namespace llvm;

namespace nestor {

/// LLVM's default of -ml-advisor-size-increase-threshold.
constexpr double GrowthCap = 2.0;

namespace {

class ReleaseAdvisor final : public InlineAdvisor {
public:
  ReleaseAdvisor(const AdvisorContext &C, Decider D, SiteFeatures Own,
                 std::unique_ptr<TrajectoryLog> Log, std::vector<size_t> Logged);
  ~ReleaseAdvisor() override;

  void onPassEntry(LazyCallGraph::SCC *) override { forget(); }
  void onPassExit(LazyCallGraph::SCC *) override { forget(); }
  void onInlined(const Function &Caller, const Function &Callee,
                 int64_t CallerBefore, int64_t CalleeBefore, bool CalleeDeleted);
  /// The instructions of \p F, if there is a cap that they count for. They are counted
  /// at once then: past the cap inlining is not followed any more.
  int64_t sizeForCap(const Function &F) {
    return D.isCapped() ? Counts.of(F).Instructions : 0;
  }

private:
  std::unique_ptr<InlineAdvice> getAdviceImpl(CallBase &CB) override;
  std::unique_ptr<InlineAdvice> getMandatoryAdvice(CallBase &CB, bool Advice) override;
  std::unique_ptr<InlineAdvice> untracked(CallBase &CB, bool Inline) {
    return std::make_unique<InlineAdvice>(this, CB, getCallerORE(CB), Inline);
  }
  std::unique_ptr<InlineAdvice> inlineIt(CallBase &CB);
  void forget() {
    Counts.clear();
    Own.clear();
  }
  double readCallSite(CallBase &CB, size_t Tensor, function_ref<int()> Cost);
  void log(CallBase &CB, Decision Record, function_ref<double(size_t)> Read);

  Decider D;
  SiteFeatures Own;
  DefaultInlineAdvisor Stock;
  BlockCounts Counts;
  int64_t InitialInstructions = 0, Instructions = 0;
  bool CapReached = false;
  std::unique_ptr<TrajectoryLog> Log; ///< Of the tensors Logged; may be null.
  const std::vector<size_t> Logged;
  uint64_t Decisions = 0, AskedAfterCap = 0;
};

/// Follows a site whose answer was to inline.
class ReleaseAdvice final : public InlineAdvice {
public:
  ReleaseAdvice(ReleaseAdvisor &Owner, CallBase &CB, OptimizationRemarkEmitter &ORE)
      : InlineAdvice(&Owner, CB, ORE, true),
        CallerBefore(Owner.sizeForCap(*Caller)),
        CalleeBefore(Owner.sizeForCap(*Callee)) {}

private:
  void recordInliningImpl() override { inlined(false); }
  void recordInliningWithCalleeDeletedImpl() override { inlined(true); }
  void inlined(bool CalleeDeleted) {
    static_cast<ReleaseAdvisor *>(Advisor)->onInlined(
        *Caller, *Callee, CallerBefore, CalleeBefore, CalleeDeleted);
  }

  const int64_t CallerBefore, CalleeBefore;
};

} // namespace

/// Whether this advisor can compute \p Tensor. The counts of uses are left to
/// LLVM's advisor, which keeps them from the last change of the function's body.
static bool canRead(size_t Tensor) {
  if (Tensor < size_t(InlineCostFeatureIndex::NumberOfFeatures) ||
      SiteFeatures::has(Tensor))
    return true;
  switch (FeatureIndex(Tensor)) {
  case FeatureIndex::callee_basic_block_count:
  case FeatureIndex::caller_basic_block_count:
  case FeatureIndex::callee_conditionally_executed_blocks:
  case FeatureIndex::caller_conditionally_executed_blocks:
  case FeatureIndex::nr_ctant_params:
  case FeatureIndex::cost_estimate:
  case FeatureIndex::is_callee_avail_external:
  case FeatureIndex::is_caller_avail_external:
    return true;
  default:
    return false;
  }
}

ReleaseAdvisor::ReleaseAdvisor(const AdvisorContext &C, Decider D,
                               SiteFeatures Own, std::unique_ptr<TrajectoryLog> Log,
                               std::vector<size_t> Logged)
    : InlineAdvisor(C.M, C.FAM, C.IC), D(std::move(D)), Own(std::move(Own)),
      Stock(C.M, C.FAM, C.Params, C.IC), Log(std::move(Log)),
      Logged(std::move(Logged)) {
  if (!this->D.isCapped())
    return; // The stock heuristic has no cap.
  for (const Function &F : M)
    if (!F.isDeclaration())
      InitialInstructions += BlockCounts::count(F).Instructions;
  Instructions = InitialInstructions;
}

ReleaseAdvisor::~ReleaseAdvisor() {
  D.finish(M);
  if (Log)
    finish(*Log, M,
           json::Object{{"decisions", Decisions},
                        {"growth_cap_reached", CapReached || D.isSpent()},
                        {"asked_after_growth_cap", AskedAfterCap + D.askedWhenSpent()},
                        {"overrides", D.overrides()}});
}

void ReleaseAdvisor::onInlined(const Function &Caller, const Function &Callee,
                               int64_t CallerBefore, int64_t CalleeBefore,
                               bool CalleeDeleted) {
  Own.onInlined(Caller, Callee);
  Counts.onInlined(Caller);
  Instructions += sizeForCap(Caller) - CallerBefore;
  if (CalleeDeleted) {
    Instructions -= CalleeBefore;
    Counts.erase(Callee);
  }
  if (D.isCapped() && Instructions > GrowthCap * InitialInstructions)
    CapReached = true;
}

double ReleaseAdvisor::readCallSite(CallBase &CB, size_t Tensor,
                                    function_ref<int()> Cost) {
  if (SiteFeatures::has(Tensor))
    return Own.read(CB, Tensor);
  const Function &Caller = *CB.getCaller(), &Callee = *CB.getCalledFunction();
  switch (FeatureIndex(Tensor)) {
  case FeatureIndex::callee_basic_block_count:
    return Counts.of(Callee).Blocks;
  case FeatureIndex::caller_basic_block_count:
    return Counts.of(Caller).Blocks;
  case FeatureIndex::callee_conditionally_executed_blocks:
    return Counts.of(Callee).ConditionalBlocks;
  case FeatureIndex::caller_conditionally_executed_blocks:
    return Counts.of(Caller).ConditionalBlocks;
  case FeatureIndex::nr_ctant_params:
    return llvm::count_if(CB.args(),
                          [](const Use &U) { return isa<Constant>(U); });
  case FeatureIndex::cost_estimate:
    return Cost();
  case FeatureIndex::is_callee_avail_external:
    return Callee.hasAvailableExternallyLinkage();
  case FeatureIndex::is_caller_avail_external:
    return Caller.hasAvailableExternallyLinkage();
  default:
    llvm_unreachable("canRead refused this tensor");
  }
}

// The analyses are the price of this function, so each is made when its result
// can still change the answer: attributes that forbid inlining cannot turn a "no"
// around, and where the stock heuristic says "inline" both allow it.
std::unique_ptr<InlineAdvice> ReleaseAdvisor::getAdviceImpl(CallBase &CB) {
  Function &Caller = *CB.getCaller(), &Callee = *CB.getCalledFunction();
  if (!Counts.isReachable(*CB.getParent()))
    return untracked(CB, false);
  if (&Caller == &Callee)
    return isInlinedInItself(D, Stock, CB) ? inlineIt(CB) : untracked(CB, false);
  auto MandatoryKind = [&] { return getMandatoryKind(CB, FAM, getCallerORE(CB)); };
  if (CapReached) {
    // The cap is a policy's: it does not bind the functions of other levels.
    const bool IsCapped = D.isCappedIn(Caller);
    AskedAfterCap += IsCapped;
    return untracked(CB, IsCapped ? MandatoryKind() == MandatoryInliningKind::Always
                                  : stockAnswer(Stock, CB));
  }
  bool Allowed = false; // By the attributes of the call.
  if (CB.hasFnAttr(Attribute::AlwaysInline)) {
    const MandatoryInliningKind Kind = MandatoryKind();
    if (Kind != MandatoryInliningKind::NotMandatory)
      return Kind == MandatoryInliningKind::Always ? getMandatoryAdvice(CB, true)
                                                   : untracked(CB, false);
    Allowed = true;
  } else if (CB.isNoInline() || Callee.isInterposable()) {
    return untracked(CB, false); // The same, for a fraction of the price.
  }

  auto Assumptions = [&](Function &F) -> AssumptionCache & {
    return FAM.getResult<AssumptionAnalysis>(F);
  };
  auto &TTI = FAM.getResult<TargetIRAnalysis>(Callee);
  bool Estimated = false, StockInlines = false;
  std::optional<int> Estimate; // None: the site cannot be inlined at all.
  auto Cost = [&]() -> const std::optional<int> & {
    if (!Estimated)
      Estimate = getInliningCostEstimate(CB, TTI, Assumptions);
    Estimated = true;
    return Estimate;
  };
  std::optional<InlineCostFeatures> CostFeatures;
  auto Read = [&](size_t Tensor) -> double {
    if (Tensor >= size_t(InlineCostFeatureIndex::NumberOfFeatures))
      return readCallSite(CB, Tensor, [&] { return Cost().value_or(0); });
    if (!CostFeatures)
      CostFeatures = getInliningCostFeatures(CB, TTI, Assumptions);
    return CostFeatures ? (*CostFeatures)[Tensor] : 0;
  };
  Own.onQuestion();
  Decision Record = D.decide(
      CB, [&] { return StockInlines = stockAnswer(Stock, CB); }, Read,
      [&](Price P) { return Own.canTry(CB, P); });
  if (Log)
    log(CB, Record, Read);
  if (!Record.Answer)
    return untracked(CB, false);
  if (!StockInlines &&
      (!Cost() ||
       (!Allowed && MandatoryKind() == MandatoryInliningKind::Never)))
    return untracked(CB, false);
  D.onInlining(CB, Record);
  return inlineIt(CB);
}

/// Writes what is known before the answer is tried: it is taken to succeed.
void ReleaseAdvisor::log(CallBase &CB, Decision Record,
                         function_ref<double(size_t)> Read) {
  ++Decisions;
  for (size_t Tensor : Logged)
    Record.Features.push_back(SiteFeatures::has(Tensor) ? Own.readAgain(CB, Tensor)
                                                        : int64_t(Read(Tensor)));
  Record.Caller = functionID(*CB.getCaller());
  Record.Callee = functionID(*CB.getCalledFunction());
  write(*Log, Record, Record.Answer ? Effect::Inlined : Effect::NotTried);
}

std::unique_ptr<InlineAdvice> ReleaseAdvisor::inlineIt(CallBase &CB) {
  // Growth matters to a policy's features, to its cap and to a log.
  if ((!D.hasPolicy() && !Log) || CapReached)
    return untracked(CB, true);
  return std::make_unique<ReleaseAdvice>(*this, CB, getCallerORE(CB));
}

std::unique_ptr<InlineAdvice>
ReleaseAdvisor::getMandatoryAdvice(CallBase &CB, bool Advice) {
  return Advice ? inlineIt(CB) : untracked(CB, false);
}

bool canRelease(const Decider &D, ArrayRef<size_t> Logged) {
  // Of two calls with one key the first that is decided keeps it, and this
  // advisor decides fewer.
  return llvm::all_of(D.tensors(), canRead) && llvm::all_of(Logged, canRead) &&
         !D.usesSiteKeys() && !isGrowthCapGiven();
}

std::unique_ptr<InlineAdvisor>
createReleaseAdvisor(const AdvisorContext &C, Decider D, SiteFeatures Own,
                     std::unique_ptr<TrajectoryLog> Log, std::vector<size_t> Logged) {
  return std::make_unique<ReleaseAdvisor>(C, std::move(D), std::move(Own),
                                          std::move(Log), std::move(Logged));
}

} // namespace nestor
