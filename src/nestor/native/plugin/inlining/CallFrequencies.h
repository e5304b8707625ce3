//===- CallFrequencies.h - How often calls and functions run --------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// LLVM's block frequencies say how often a block runs for each entry of its function:
// by the profile if the module carries one, by static heuristics otherwise. Entries of
// a function are estimated once, before anything is inlined, by passing the frequencies
// of calls down the call graph, as LLVM's synthetic entry counts did until release 19.
//
//===----------------------------------------------------------------------===//

#ifndef NESTOR_CALLFREQUENCIES_H
#define NESTOR_CALLFREQUENCIES_H

#include "llvm/ADT/DenseMap.h"
#include "llvm/IR/InstrTypes.h"
#include "llvm/IR/PassManager.h"
#include <memory>
#include <optional>
#include <unordered_map>

namespace nestor {

class CallFrequencies {
public:
  explicit CallFrequencies(llvm::ModuleAnalysisManager &MAM);
  CallFrequencies(CallFrequencies &&);
  ~CallFrequencies();

  /// Estimates the entries of all functions of \p M, to be called before it changes.
  void estimateEntries(llvm::Module &M);

  /// 0 cold, 1 neither, 2 hot; -1 without a profile.
  int64_t hotness(const llvm::CallBase &CB);
  /// Executions of \p CB for 1,000 entries of its function.
  int64_t perEntry(const llvm::CallBase &CB);
  /// The loops around \p CB in its function.
  int64_t loopDepth(const llvm::CallBase &CB);
  /// 1,000 times the estimated entries of \p F; -1 if it was not estimated.
  int64_t entries(const llvm::Function &F) const;
  /// The product of both: 1,000 times the estimated executions of \p CB.
  int64_t executions(const llvm::CallBase &CB);
  /// Instructions of \p F that one entry executes, without those of its callees.
  int64_t instructionsPerEntry(const llvm::Function &F);
  /// Executions of \p CB in a billion of all blocks that the profile counted; -1
  /// without a profile, -2 if it lacks this function.
  int64_t shareOfProfile(const llvm::CallBase &CB);

  /// To be called when any function may have changed.
  void clear();
  /// To be called when \p F changed.
  void forget(const llvm::Function &F);

private:
  struct Blocks;
  Blocks &blocksOf(const llvm::Function &F);
  double perEntry(const llvm::BasicBlock &BB);

  llvm::ModuleAnalysisManager &MAM;
  llvm::DenseMap<const llvm::Function *, std::unique_ptr<Blocks>> Known;
  std::unordered_map<uint64_t, double> Entries; ///< By the function's stable id.
  std::optional<uint64_t> Counted;              ///< By the whole profile, in blocks.
};

} // namespace nestor

#endif
