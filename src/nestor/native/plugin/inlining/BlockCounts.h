//===- BlockCounts.h - What functions have in their reachable blocks ------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Sizes are those of reachable blocks, as LLVM's ML advisor has them (llvm/lib/
// Analysis/FunctionPropertiesAnalysis.cpp). Nothing is counted before it is asked for.
//
//===----------------------------------------------------------------------===//

#ifndef NESTOR_BLOCKCOUNTS_H
#define NESTOR_BLOCKCOUNTS_H

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DepthFirstIterator.h"
#include "llvm/IR/Function.h"
#include <cstdint>
#include <optional>

namespace nestor {

/// Counts of a function's reachable blocks.
struct FunctionFacts {
  int64_t Blocks = 0, ConditionalBlocks = 0, Instructions = 0;
};

class BlockCounts {
public:
  /// Counts \p F as it is now, and keeps nothing.
  static FunctionFacts count(const llvm::Function &F);
  FunctionFacts of(const llvm::Function &F);
  bool isReachable(const llvm::BasicBlock &BB) const;

  /// To be called when something was inlined into \p Caller.
  void onInlined(const llvm::Function &Caller);
  /// To be called when \p F is deleted.
  void erase(const llvm::Function &F);
  /// To be called when any function may have changed.
  void clear();

private:
  using BlockSet = llvm::df_iterator_default_set<const llvm::BasicBlock *, 16>;
  static FunctionFacts countReached(const llvm::Function &F, BlockSet &Reached);

  llvm::DenseMap<const llvm::Function *, FunctionFacts> Facts;
  /// The blocks of functions that something was inlined into: that can leave
  /// dead code of any shape, where the simplification before left none. None: they
  /// were not asked for since.
  llvm::DenseMap<const llvm::Function *, std::optional<BlockSet>> Reached;
};

} // namespace nestor

#endif
