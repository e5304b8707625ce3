//===- CallFrequencies.cpp - How often calls and functions run ------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CallFrequencies.h"
#include "plugin/core/StableIDs.h"
#include "llvm/ADT/SCCIterator.h"
#include "llvm/Analysis/BlockFrequencyInfo.h"
#include "llvm/Analysis/BranchProbabilityInfo.h"
#include "llvm/Analysis/CallGraph.h"
#include "llvm/Analysis/LoopInfo.h"
#include "llvm/Analysis/ProfileSummaryInfo.h"
#include "llvm/IR/Dominators.h"
#include "llvm/IR/Module.h"
#include "llvm/IR/ProfileSummary.h"
#include <algorithm>
#include <cmath>

using namespace llvm;

namespace nestor {

constexpr int64_t Missing = -1, Uncounted = -2;
constexpr double MostEntries = 1e12, PerBillion = 1e9;

static int64_t thousandths(double X) { return std::llround(1000 * std::min(X, MostEntries)); }

/// Frequencies of our own: those that the analysis manager keeps depend on the order
/// in which they are read.
struct CallFrequencies::Blocks {
  explicit Blocks(Function &F)
      : Dominators(F), Loops(Dominators),
        Branches(F, Loops, /*TLI=*/nullptr, &Dominators), // Or it makes its own.
        Frequencies(F, Branches, Loops) {}

  double perEntry(const BasicBlock &BB) const {
    const auto Entry = double(Frequencies.getEntryFreq().getFrequency());
    return Entry > 0 ? double(Frequencies.getBlockFreq(&BB).getFrequency()) / Entry : 0;
  }

  DominatorTree Dominators;
  LoopInfo Loops;
  BranchProbabilityInfo Branches;
  BlockFrequencyInfo Frequencies;
};

CallFrequencies::CallFrequencies(ModuleAnalysisManager &MAM) : MAM(MAM) {}
CallFrequencies::CallFrequencies(CallFrequencies &&) = default;
CallFrequencies::~CallFrequencies() = default;

void CallFrequencies::clear() { Known.clear(); }
void CallFrequencies::forget(const Function &F) { Known.erase(&F); }

/// Executions of \p BB for an entry of its function. Those of the first block need no
/// analysis: it is in no loop, and its frequency is what all are divided by.
double CallFrequencies::perEntry(const BasicBlock &BB) {
  return BB.isEntryBlock() ? 1 : blocksOf(*BB.getParent()).perEntry(BB);
}

CallFrequencies::Blocks &CallFrequencies::blocksOf(const Function &F) {
  std::unique_ptr<Blocks> &Cached = Known[&F];
  if (!Cached)
    Cached = std::make_unique<Blocks>(const_cast<Function &>(F));
  return *Cached;
}

// Recursion is left out: a call within a component of the call graph adds nothing, so
// that the callers of each function are known when it is its turn.
void CallFrequencies::estimateEntries(Module &M) {
  CallGraph Graph(M);
  std::vector<std::vector<Function *>> BottomUp;
  for (auto It = scc_begin(&Graph); !It.isAtEnd(); ++It) {
    std::vector<Function *> Component;
    for (const CallGraphNode *Node : *It)
      if (Function *F = Node->getFunction(); F && !F->isDeclaration())
        Component.push_back(F);
    BottomUp.push_back(std::move(Component));
  }
  DenseMap<const Function *, double> Found;
  for (const std::vector<Function *> &Component : llvm::reverse(BottomUp)) {
    for (Function *F : Component)
      if (!F->hasLocalLinkage() || F->hasAddressTaken())
        Found[F] += 1; // Somebody outside, or through the pointer.
    for (Function *F : Component) {
      const double Own = Found.lookup(F);
      std::optional<Blocks> Of; // Most functions call only in their first block, or out.
      for (const BasicBlock &BB : *F)
        for (const Instruction &I : BB) {
          const auto *CB = dyn_cast<CallBase>(&I);
          const Function *Callee = CB ? CB->getCalledFunction() : nullptr;
          if (!Callee || Callee->isDeclaration() || llvm::is_contained(Component, Callee))
            continue;
          if (!Of && !BB.isEntryBlock())
            Of.emplace(*F);
          const double PerEntry = BB.isEntryBlock() ? 1 : Of->perEntry(BB);
          Found[Callee] = std::min(MostEntries, Found[Callee] + Own * PerEntry);
        }
    }
  }
  Entries.clear();
  for (const auto &[F, Number] : Found)
    Entries[functionID(*F)] = Number;
}

int64_t CallFrequencies::entries(const Function &F) const {
  const auto It = Entries.find(functionID(F));
  return It == Entries.end() ? Missing : thousandths(It->second);
}

int64_t CallFrequencies::hotness(const CallBase &CB) {
  const Function &Caller = *CB.getCaller();
  auto &Profile = MAM.getResult<ProfileSummaryAnalysis>(
      *const_cast<Module *>(Caller.getParent()));
  if (!Profile.hasProfileSummary())
    return Missing;
  BlockFrequencyInfo &Of = blocksOf(Caller).Frequencies;
  if (Profile.isHotCallSite(CB, &Of))
    return 2;
  return !Profile.isColdCallSite(CB, &Of);
}

int64_t CallFrequencies::perEntry(const CallBase &CB) {
  return thousandths(perEntry(*CB.getParent()));
}

int64_t CallFrequencies::loopDepth(const CallBase &CB) {
  const BasicBlock &BB = *CB.getParent();
  return BB.isEntryBlock() ? 0 : blocksOf(*CB.getCaller()).Loops.getLoopDepth(&BB);
}

int64_t CallFrequencies::executions(const CallBase &CB) {
  const int64_t Of = entries(*CB.getCaller());
  if (Of == Missing)
    return Missing;
  return thousandths(double(Of) / 1000 * perEntry(*CB.getParent()));
}

int64_t CallFrequencies::instructionsPerEntry(const Function &F) {
  double Sum = 0;
  for (const BasicBlock &BB : F)
    Sum += perEntry(BB) * double(BB.size()); // Debug information is not in the list.
  return std::llround(std::min(Sum, MostEntries));
}

int64_t CallFrequencies::shareOfProfile(const CallBase &CB) {
  const Module &M = *CB.getModule();
  if (!Counted) {
    Metadata *Summary = M.getProfileSummary(/*IsCS=*/false);
    const std::unique_ptr<ProfileSummary> Read(
        Summary ? ProfileSummary::getFromMD(Summary) : nullptr);
    Counted = Read ? Read->getTotalCount() : 0;
  }
  if (*Counted == 0)
    return Missing;
  const std::optional<uint64_t> Count =
      blocksOf(*CB.getCaller()).Frequencies.getBlockProfileCount(CB.getParent());
  if (!Count)
    return Uncounted;
  return std::llround(std::min(1.0, double(*Count) / double(*Counted)) * PerBillion);
}

} // namespace nestor
