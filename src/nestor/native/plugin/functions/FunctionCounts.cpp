//===- FunctionCounts.cpp - What a function's machine code will be made of ===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "FunctionCounts.h"
#include "Counts.h"
#include "OpcodeHistogram.h"
#include "plugin/Compat.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Analysis/LoopInfo.h"
#include "llvm/Analysis/TargetTransformInfo.h"
#include "llvm/IR/Dominators.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/Module.h"

using namespace llvm;

namespace nestor {

static void countFunctionItself(const Function &F, Counts &C) {
  C.IsLocal = F.hasLocalLinkage();
  C.IsLinkOnceODR = F.hasLinkOnceODRLinkage();
  C.IsLinkOnce = F.hasLinkOnceLinkage();
  C.Blocks = F.size();
  C.Arguments = F.arg_size();
  C.ReturnsValue = !F.getReturnType()->isVoidTy();
  C.MayThrow = !F.doesNotThrow();
  C.HasPersonality = F.hasPersonalityFn();
  C.HasUnwindTable = F.hasUWTable();
}

static void countGraph(Function &F, Counts &C) {
  DominatorTree Dominators(F);
  LoopInfo Loops(Dominators);
  C.Loops = std::distance(Loops.begin(), Loops.end());
  for (const Loop *L : Loops)
    C.MaxLoopDepth = std::max<int64_t>(C.MaxLoopDepth, L->getLoopDepth());
  for (const BasicBlock &BB : F)
    if (const auto *Node = Dominators.getNode(&BB))
      C.MaxDomTreeLevel = std::max<int64_t>(C.MaxDomTreeLevel, Node->getLevel());
}

/// What a block's values ask of the registers: how many outlive it, how many live
/// across a call in it, how many live at once.
static void countLives(const BasicBlock &BB, Counts &C) {
  DenseMap<const Value *, unsigned> Ends; // Of what ends here: the last use.
  unsigned Place = 0;
  for (const Instruction &I : BB) {
    ++Place;
    for (const Value *V : I.operands())
      if (const auto *Def = dyn_cast<Instruction>(V); Def && Def->getParent() == &BB)
        Ends[Def] = Place;
  }
  const unsigned Last = Place + 1;
  std::vector<int64_t> Ending(Last + 1);
  SmallVector<std::pair<unsigned, unsigned>, 32> Spans;
  SmallVector<unsigned, 16> CallPlaces;
  int64_t Live = 0;
  Place = 0;
  for (const Instruction &I : BB) {
    ++Place;
    Live -= Ending[Place];
    const auto *CB = dyn_cast<CallBase>(&I);
    if (CB && !isa<IntrinsicInst>(CB) && !CB->isInlineAsm())
      CallPlaces.push_back(Place);
    if (I.getType()->isVoidTy() || isa<AllocaInst>(I))
      continue;
    const bool Outlives = I.isUsedOutsideOfBlock(&BB);
    C.ValuesAcrossBlocks += Outlives;
    const unsigned End = Outlives ? Last : Ends.lookup(&I);
    if (!End)
      continue;
    Spans.push_back({Place, End});
    ++Live;
    ++Ending[End];
    C.MostLiveInBlock = std::max(C.MostLiveInBlock, Live);
  }
  for (auto [Begin, End] : Spans) {
    auto Next = llvm::upper_bound(CallPlaces, Begin);
    C.ValuesAcrossCalls += Next != CallPlaces.end() && *Next < End;
  }
}

std::vector<std::string> functionCountNames() {
  std::vector<std::string> Result;
  for (const NamedCount &N : namedCounts())
    Result.push_back(N.Name);
  OpcodeHistogram::appendNames(Result);
  return Result;
}

std::vector<int64_t> countFunction(Function &F, const TargetTransformInfo &TTI) {
  Counts C;
  countFunctionItself(F, C);
  countGraph(F, C);
  OpcodeHistogram Opcodes;
  InstructionCost Size = 0;
  for (const BasicBlock &BB : F) {
    for (const Instruction &I : BB) {
      ++C.Instructions;
      Opcodes.add(I.getOpcode());
      InstructionCost Cost =
          TTI.getInstructionCost(&I, TargetTransformInfo::TCK_CodeSize);
      if (Cost.isValid())
        Size += Cost;
      countInstruction(I, C);
    }
    countLives(BB, C);
    if (BB.getTerminator()->getNumSuccessors() > 1)
      C.CriticalEdges += llvm::count_if(successors(&BB), [](const BasicBlock *To) {
        return !To->getSinglePredecessor();
      });
  }
  C.InitialSize = valueOf(Size); // The sum saturates.
  std::vector<int64_t> Result;
  for (const NamedCount &N : namedCounts())
    Result.push_back(C.*N.Value);
  Opcodes.appendCounts(Result);
  return Result;
}

} // namespace nestor
