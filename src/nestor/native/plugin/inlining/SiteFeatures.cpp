//===- SiteFeatures.cpp - Features that LLVM's own advisor lacks ----------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "SiteFeatures.h"
#include "plugin/Compat.h"
#include "plugin/core/StableIDs.h"
#include "SiteKeys.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Analysis/TargetTransformInfo.h"
#include "llvm/IR/IntrinsicInst.h"

using namespace llvm;

namespace nestor {

/// Missing: no profile, no program summary, a function not in it.
constexpr int64_t Missing = -1;

/// One pass over a function's instructions.
struct SiteFeatures::Body {
  explicit Body(const Function &F);

  int64_t Instructions = 0;
  std::optional<int64_t> CodeSize; ///< A pass of its own, which costs several times more.
  int64_t Calls = 0, Invokes = 0; ///< Invokes are among the calls.
  int64_t LandingPads = 0, Allocas = 0, Loads = 0, Stores = 0, Returns = 0;
};

struct SiteFeatures::Uses {
  int64_t Calls = 0; ///< As the called operand.
  int64_t Others = 0;
};

/// What the table's readers look at.
struct SiteFeatures::Site {
  SiteFeatures &Of;
  const CallBase &CB;
  const Function &Caller, &Callee;

  const Body &callerBody() const { return Of.bodyOf(Caller); }
  const Body &calleeBody() const { return Of.bodyOf(Callee); }
  Uses callerUses() const { return Of.usesOf(Caller); }
  Uses calleeUses() const { return Of.usesOf(Callee); }
  int64_t inProgram(const Function &F,
                    int64_t ProgramSummary::Function::*Count) const {
    const ProgramSummary::Function *Use = Of.inProgram(F);
    return Use ? Use->*Count : Missing;
  }
};

struct SiteFeatures::Feature {
  const char *Name;
  int64_t (*Read)(const Site &);
  Price Costs = Price::Function;
  bool NeedsEntries = false; ///< estimateEntries() has to come before it is read.
};

SiteFeatures::Body::Body(const Function &F) {
  for (const BasicBlock &BB : F)
    for (const Instruction &I : BB) {
      ++Instructions;
      if (const auto *CB = dyn_cast<CallBase>(&I)) {
        Calls += !isa<IntrinsicInst>(CB) && !CB->isInlineAsm();
        Invokes += isa<InvokeInst>(CB);
        continue;
      }
      LandingPads += isa<LandingPadInst>(I);
      Allocas += isa<AllocaInst>(I);
      Loads += isa<LoadInst>(I);
      Stores += isa<StoreInst>(I);
      Returns += isa<ReturnInst>(I);
    }
}

static int64_t sumCodeSize(const Function &F, const TargetTransformInfo &TTI) {
  InstructionCost Size = 0;
  for (const BasicBlock &BB : F)
    for (const Instruction &I : BB) {
      InstructionCost Cost =
          TTI.getInstructionCost(&I, TargetTransformInfo::TCK_CodeSize);
      if (Cost.isValid())
        Size += Cost;
    }
  return valueOf(Size); // The sum saturates.
}

static bool isCold(const Function &F) { return F.hasFnAttribute(Attribute::Cold); }

/// Whether \p CB stands where a program that goes well does not come.
static bool isInColdBlock(const CallBase &CB) {
  const BasicBlock &BB = *CB.getParent();
  return isa<UnreachableInst, ResumeInst>(BB.getTerminator()) || BB.isEHPad() ||
         CB.hasFnAttr(Attribute::Cold) || CB.doesNotReturn();
}

static int64_t countCallsOf(const Function &Callee, const Function &Caller) {
  return llvm::count_if(Callee.uses(), [&](const Use &U) {
    const auto *CB = dyn_cast<CallBase>(U.getUser());
    return CB && CB->isCallee(&U) && CB->getCaller() == &Caller;
  });
}

static bool isChoice(const User *U) {
  return isa<ICmpInst, SwitchInst, SelectInst>(U) || isBranch(*U);
}

/// How much in the callee is decided by its arguments that are constants here.
static int64_t countDecidedBranches(const CallBase &CB, const Function &Callee) {
  int64_t Result = 0;
  for (const Argument &A : Callee.args()) {
    if (A.getArgNo() >= CB.arg_size() ||
        !isa<Constant>(CB.getArgOperand(A.getArgNo())))
      continue;
    for (const User *U : A.users()) {
      Result += isChoice(U);
      if (isa<CastInst, ICmpInst, FreezeInst>(U))
        Result += llvm::count_if(U->users(), isChoice);
    }
  }
  return Result;
}

/// Pointers to variables of the caller, which inlining may turn into registers.
static int64_t countAllocaArguments(const CallBase &CB) {
  return llvm::count_if(CB.args(), [](const Use &U) {
    return U->getType()->isPointerTy() &&
           isa<AllocaInst>(U->stripInBoundsOffsets());
  });
}

// The names are part of policies and logs; docs/reference/formats.md explains each.
#define READ(VALUE) [](const Site &S) -> int64_t { return VALUE; }
const SiteFeatures::Feature SiteFeatures::Table[] = {
    {"callee_is_local", READ(S.Callee.hasLocalLinkage()), Price::Glance},
    {"callee_is_discardable", READ(S.Callee.isDiscardableIfUnused()), Price::Glance},
    {"callee_has_comdat", READ(S.Callee.hasComdat()), Price::Glance},
    {"callee_uses", READ(S.calleeUses().Calls + S.calleeUses().Others)},
    {"callee_call_uses", READ(S.calleeUses().Calls)},
    {"callee_address_taken", READ(S.calleeUses().Others != 0)},
    {"callee_disappears",
     READ(S.Callee.isDiscardableIfUnused() && S.Callee.hasOneUse()), Price::Glance},
    {"callee_instructions", READ(S.calleeBody().Instructions)},
    {"callee_code_size", READ(S.Of.codeSizeOf(S.Callee)), Price::LongPass},
    {"callee_calls", READ(S.calleeBody().Calls)},
    {"callee_invokes", READ(S.calleeBody().Invokes)},
    {"callee_landing_pads", READ(S.calleeBody().LandingPads)},
    {"callee_allocas", READ(S.calleeBody().Allocas)},
    {"callee_loads", READ(S.calleeBody().Loads)},
    {"callee_stores", READ(S.calleeBody().Stores)},
    {"callee_returns", READ(S.calleeBody().Returns)},
    {"callee_arguments", READ(S.Callee.arg_size()), Price::Glance},
    {"callee_may_throw", READ(!S.Callee.doesNotThrow()), Price::Glance},
    {"callee_is_cold", READ(isCold(S.Callee)), Price::Glance},
    {"callee_is_leaf", READ(S.calleeBody().Calls == 0)},

    {"caller_is_local", READ(S.Caller.hasLocalLinkage()), Price::Glance},
    {"caller_is_discardable", READ(S.Caller.isDiscardableIfUnused()), Price::Glance},
    {"caller_call_uses", READ(S.callerUses().Calls)},
    {"caller_instructions", READ(S.callerBody().Instructions)},
    {"caller_code_size", READ(S.Of.codeSizeOf(S.Caller)), Price::LongPass},
    {"caller_calls", READ(S.callerBody().Calls)},
    {"caller_landing_pads", READ(S.callerBody().LandingPads)},
    {"caller_may_throw", READ(!S.Caller.doesNotThrow()), Price::Glance},
    {"caller_is_cold", READ(isCold(S.Caller)), Price::Glance},

    {"call_arguments", READ(S.CB.arg_size()), Price::Glance},
    {"call_result_used", READ(!S.CB.use_empty()), Price::Glance},
    {"call_is_invoke", READ(isa<InvokeInst>(S.CB)), Price::Glance},
    {"call_in_cold_block", READ(isInColdBlock(S.CB)), Price::Glance},
    {"calls_to_callee_in_caller", READ(countCallsOf(S.Callee, S.Caller))},
    {"constant_argument_branches", READ(countDecidedBranches(S.CB, S.Callee))},
    {"pointer_to_alloca_arguments", READ(countAllocaArguments(S.CB)), Price::Glance},
    {"call_hotness", READ(S.Of.Runs.hotness(S.CB)), Price::Frequencies},
    {"call_frequency", READ(S.Of.Runs.perEntry(S.CB)), Price::Frequencies},
    {"call_loop_depth", READ(S.Of.Runs.loopDepth(S.CB)), Price::Frequencies},
    {"call_executions", READ(S.Of.Runs.executions(S.CB)), Price::Frequencies, true},
    {"call_profile_share", READ(S.Of.Runs.shareOfProfile(S.CB)), Price::Glance},
    {"caller_entries", READ(S.Of.Runs.entries(S.Caller)), Price::Function, true},
    {"callee_entries", READ(S.Of.Runs.entries(S.Callee)), Price::Function, true},
    {"callee_executed", READ(S.Of.Runs.instructionsPerEntry(S.Callee)),
     Price::CalleeFrequencies},

    {"program_callee_copies",
     READ(S.inProgram(S.Callee, &ProgramSummary::Function::Copies))},
    {"program_callee_bytes",
     READ(S.inProgram(S.Callee, &ProgramSummary::Function::Bytes))},
    {"program_callee_calls",
     READ(S.inProgram(S.Callee, &ProgramSummary::Function::Calls))},
    {"program_callee_users",
     READ(S.inProgram(S.Callee, &ProgramSummary::Function::Users))},
    {"program_callee_address_taken",
     READ(S.inProgram(S.Callee, &ProgramSummary::Function::AddressTaken))},
    {"program_caller_copies",
     READ(S.inProgram(S.Caller, &ProgramSummary::Function::Copies))},
    {"program_caller_calls",
     READ(S.inProgram(S.Caller, &ProgramSummary::Function::Calls))},
    {"program_link_gc",
     READ(S.Of.Program ? int64_t(S.Of.Program->linkMode()) : Missing), Price::Glance},

    {"trial_calls", READ(S.Of.extentOf(S.CB).Calls), Price::LongPass},
    {"trial_copied", READ(S.Of.extentOf(S.CB).Copied), Price::LongPass},
    {"trial_instructions", READ(S.Of.extentOf(S.CB).Instructions), Price::LongPass},
    {"trial_bytes", READ(S.Of.tryAllCalls(S.CB).Apart), Price::Trial},
    {"trial_saved", READ(S.Of.tryAllCalls(S.CB).Saved), Price::Trial},
    {"trial_saved_permille", READ(S.Of.tryAllCalls(S.CB).savedPermille()), Price::Trial},
    {"caller_trial_bytes", READ(S.Of.Trials.inCaller(S.CB).Apart), Price::CallerTrial},
    {"caller_trial_saved", READ(S.Of.Trials.inCaller(S.CB).Saved), Price::CallerTrial},
};
#undef READ

/// How many features LLVM has of its own: asked for each feature of each site.
static size_t inTree() {
  static const size_t Count = inTreeFeatures().size();
  return Count;
}

std::vector<TensorSpec> SiteFeatures::offered() const {
  std::vector<TensorSpec> Result = inTreeFeatures();
  for (const Feature &F : Table)
    Result.push_back(TensorSpec::createSpec<int64_t>(F.Name, {1}));
  for (const char *Whose : {"callee", "caller"})
    for (size_t K = 0; Vocabulary && K < Vocabulary->dimension(); ++K)
      Result.push_back(TensorSpec::createSpec<int64_t>(
          Whose + ("_ir2vec_" + std::to_string(K)), {1}));
  return Result;
}

bool SiteFeatures::has(size_t Tensor) { return Tensor >= inTree(); }

Price SiteFeatures::priceOf(size_t Tensor) {
  if (Tensor < size_t(InlineCostFeatureIndex::NumberOfFeatures))
    return Price::Estimate;
  if (has(Tensor)) {
    const size_t Own = Tensor - inTree();
    return Own < std::size(Table) ? Table[Own].Costs : Price::Function;
  }
  switch (FeatureIndex(Tensor)) {
  case FeatureIndex::cost_estimate:
    return Price::Estimate;
  case FeatureIndex::nr_ctant_params:
  case FeatureIndex::is_callee_avail_external:
  case FeatureIndex::is_caller_avail_external:
    return Price::Glance;
  default:
    return Price::Function;
  }
}

bool SiteFeatures::needsEntries(size_t Tensor) {
  const size_t Own = Tensor - inTree();
  return has(Tensor) && Own < std::size(Table) && Table[Own].NeedsEntries;
}

SiteFeatures::SiteFeatures(ModuleAnalysisManager &MAM,
                           FunctionAnalysisManager &FAM,
                           std::optional<ProgramSummary> Program,
                           std::optional<Embeddings> Vocabulary)
    : FAM(FAM), Program(std::move(Program)), Vocabulary(std::move(Vocabulary)),
      Runs(MAM) {}
SiteFeatures::SiteFeatures(SiteFeatures &&) = default;
SiteFeatures::~SiteFeatures() = default;

int64_t SiteFeatures::read(const CallBase &CB, size_t Tensor) {
  const Function &Caller = *CB.getCaller(), &Callee = *CB.getCalledFunction();
  const size_t Own = Tensor - inTree();
  if (Own < std::size(Table))
    return Table[Own].Read({*this, CB, Caller, Callee});
  const size_t K = Own - std::size(Table), N = Vocabulary->dimension();
  return K < N ? embeddingOf(Callee)[K] : embeddingOf(Caller)[K - N];
}

void SiteFeatures::clear() {
  Bodies.clear();
  UsesOf.clear();
  Runs.clear();
  Embedded.clear();
  Trials.clear();
}

void SiteFeatures::onInlined(const Function &Caller, const Function &Callee) {
  for (const Function *F : {&Caller, &Callee}) { // The callee may be deleted.
    Bodies.erase(F);
    Runs.forget(*F);
    Embedded.erase(F);
  }
  // The callee's calls are there once more, whomever they call.
  UsesOf.clear();
  Trials.onInlined(Caller, Callee);
}

SiteFeatures::Body &SiteFeatures::bodyOf(const Function &F) {
  std::unique_ptr<Body> &Cached = Bodies[&F];
  if (!Cached)
    Cached = std::make_unique<Body>(F);
  return *Cached;
}

int64_t SiteFeatures::codeSizeOf(const Function &F) {
  std::optional<int64_t> &Cached = bodyOf(F).CodeSize;
  if (!Cached)
    Cached = sumCodeSize(F, FAM.getResult<TargetIRAnalysis>(const_cast<Function &>(F)));
  return *Cached;
}

const std::vector<int64_t> &SiteFeatures::embeddingOf(const Function &F) {
  std::vector<int64_t> &Cached = Embedded[&F];
  if (Cached.empty())
    Cached = Vocabulary->of(F);
  return Cached;
}

SiteFeatures::Uses SiteFeatures::usesOf(const Function &F) {
  auto [It, New] = UsesOf.try_emplace(&F);
  if (New)
    for (const Use &U : F.uses()) {
      const auto *CB = dyn_cast<CallBase>(U.getUser());
      ++(CB && CB->isCallee(&U) ? It->second.Calls : It->second.Others);
    }
  return It->second;
}

const ProgramSummary::Function *
SiteFeatures::inProgram(const Function &F) const {
  return Program ? Program->find(functionID(F)) : nullptr;
}

/// Whether the program does without \p F when nothing in this module refers to it.
bool SiteFeatures::isOnlyUsedHere(const Function &F) const {
  if (F.hasLocalLinkage())
    return true;
  const ProgramSummary::Function *Use = inProgram(F);
  return Use && Program->linkMode() != ProgramSummary::LinkMode::KeepsUnused &&
         Use->Copies == 1 && Use->Users == 0 && !Use->AddressTaken;
}

const InliningTrials::Extent &SiteFeatures::extentOf(const CallBase &CB) {
  return Trials.extent(CB, [&] { return isOnlyUsedHere(*CB.getCalledFunction()); });
}

InliningTrials::Result SiteFeatures::tryAllCalls(const CallBase &CB) {
  return Trials.ofAllCalls(CB, [&] { return isOnlyUsedHere(*CB.getCalledFunction()); });
}

} // namespace nestor
