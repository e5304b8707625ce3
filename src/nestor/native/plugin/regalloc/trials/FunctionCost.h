//===- FunctionCost.h - What an allocated function will execute -----------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The static cost of a function: instructions and accesses to memory, each
// weighted by how often its block runs for one call of the function. It is taken
// when registers are assigned, spill code and frame code are there and nothing
// has been laid out yet, so it depends on the allocation and on little else.
//
//===----------------------------------------------------------------------===//

#ifndef NESTOR_FUNCTIONCOST_H
#define NESTOR_FUNCTIONCOST_H

#include <algorithm>
#include <cstdint>

namespace llvm {
class MachineBlockFrequencyInfo;
class MachineFunction;
} // namespace llvm

namespace nestor {

/// Plain data: a forked trial sends it through a pipe.
struct FunctionCost {
  /// Per call of the function, by the frequencies of its blocks.
  double Instructions = 0, Reads = 0, Writes = 0;
  /// Of these, stores to and loads from the slots of spilled live ranges, and
  /// copies between registers.
  double Spills = 0, Reloads = 0, Copies = 0;
  /// Each instruction once.
  uint64_t Size = 0, SpillCount = 0, ReloadCount = 0;
  /// As total(), with the square roots of the frequencies.
  double Flattened = 0;
  /// The frequencies are LLVM's guesses: the function has no profile, or none of its
  /// calls is in it.
  bool Guessed = false;

  double total() const { return Instructions + Reads + Writes; }

  /// What allocations of a function are compared by: lower is better, and \p Stock
  /// has 1. Where frequencies are guesses, an allocation must be cheap under flatter
  /// ones too: the larger ratio counts.
  double ratioTo(const FunctionCost &Stock) const {
    const double Ratio = total() / Stock.total();
    return Guessed ? std::max(Ratio, Flattened / Stock.Flattened) : Ratio;
  }

  /// The ratio to this stock allocation below which another one replaces it. Gains
  /// smaller than 0.2 % of a guess were as often losses when measured (docs/studies/
  /// register-allocation.md).
  double betterBelow() const { return Guessed ? 0.998 : 1; }
};

/// The cost of \p MF, whose registers are assigned.
FunctionCost costOf(const llvm::MachineFunction &MF,
                    const llvm::MachineBlockFrequencyInfo &Frequencies);

} // namespace nestor

#endif
