//===- BlockCounts.cpp - What functions have in their reachable blocks ----===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "BlockCounts.h"
#include "plugin/Compat.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallPtrSet.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/IR/CFG.h"

using namespace llvm;

namespace nestor {

static int64_t blocksFromCondition(const BasicBlock &BB) {
  const Instruction *End = BB.getTerminator();
  if (isa<SwitchInst>(End) || isConditionalBranch(*End))
    return End->getNumSuccessors();
  return 0;
}

/// Whether nothing jumps to \p BB.
static bool isDead(const BasicBlock &BB) {
  return pred_empty(&BB) && !BB.isEntryBlock();
}

/// Whether a way leads from the entry to \p BB, which is looked for backwards: that
/// sees few blocks, where walking from the entry sees all.
static bool isReached(const BasicBlock &BB) {
  SmallPtrSet<const BasicBlock *, 16> Seen;
  SmallVector<const BasicBlock *, 16> Next{&BB};
  while (!Next.empty()) {
    const BasicBlock *From = Next.pop_back_val();
    if (From->isEntryBlock())
      return true;
    if (Seen.insert(From).second)
      Next.append(pred_begin(From), pred_end(From));
  }
  return false;
}

static void add(const BasicBlock &BB, FunctionFacts &Facts) {
  ++Facts.Blocks;
  Facts.ConditionalBlocks += blocksFromCondition(BB);
  Facts.Instructions += BB.size(); // Debug information is not in the list.
}

FunctionFacts BlockCounts::countReached(const Function &F, BlockSet &Reached) {
  FunctionFacts Result;
  for (const BasicBlock *BB : depth_first_ext(&F, Reached))
    add(*BB, Result);
  return Result;
}

FunctionFacts BlockCounts::count(const Function &F) {
  // Walking the graph costs several times the plain loop, and is seldom needed.
  if (llvm::any_of(F, isDead)) {
    BlockSet Reached;
    return countReached(F, Reached);
  }
  FunctionFacts Result;
  for (const BasicBlock &BB : F)
    add(BB, Result);
  return Result;
}

FunctionFacts BlockCounts::of(const Function &F) {
  auto [It, New] = Facts.try_emplace(&F);
  if (!New)
    return It->second;
  auto Inlined = Reached.find(&F);
  if (Inlined == Reached.end())
    return It->second = count(F);
  return It->second = countReached(F, Inlined->second.emplace());
}

bool BlockCounts::isReachable(const BasicBlock &BB) const {
  auto It = Reached.find(BB.getParent());
  if (It == Reached.end())
    return !isDead(BB);
  return It->second ? It->second->contains(&BB) : isReached(BB);
}

void BlockCounts::onInlined(const Function &Caller) {
  Facts.erase(&Caller);
  Reached[&Caller].reset();
}

void BlockCounts::erase(const Function &F) {
  Facts.erase(&F);
  Reached.erase(&F);
}

void BlockCounts::clear() {
  Facts.clear();
  Reached.clear();
}

} // namespace nestor
