//===- Trial.h - Allocates a function in a forked child -------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A trial forks the compiler in the middle of a function's allocation. The child
// goes on under other decisions until the function's cost is known, sends it to
// its parent and ends; the parent's state is as it was. Nothing is parsed, selected
// or scheduled twice, and what both have in common is not allocated twice.
//
//===----------------------------------------------------------------------===//

#ifndef NESTOR_TRIAL_H
#define NESTOR_TRIAL_H

#include "plugin/regalloc/records/AllocationOverrides.h"
#include "FunctionCost.h"
#include <cmath>

namespace nestor {

/// How one allocation of a function went.
struct Allocation {
  FunctionCost Cost;
  /// How often the allocator asked what to evict, and for a priority.
  unsigned Questions = 0, Priorities = 0;
  /// Where the answers left the stock heuristics.
  unsigned Deviations = 0;
  /// Questions about eviction that no policy may answer: the stock heuristic's
  /// choice is not on offer, or too many evictions have left it.
  unsigned Kept = 0;

  /// False for a trial that crashed or took too long.
  bool succeeded() const { return std::isfinite(Cost.total()); }
};

/// Whether this process may fork trials: not if it has several threads, whose
/// locks a child would inherit.
bool canTry();

/// Whether this process is the child of a trial.
bool isTrial();

/// Forks. Returns true in the child, which must go on with the allocation and end
/// with finishTrial(); false in the parent once the child has ended: \p Result is
/// what it reported, or has infinite cost if it crashed or took too long.
bool forkTrial(Allocation &Result);

/// Sends \p Result to the parent and ends this process.
[[noreturn]] void finishTrial(const Allocation &Result);

/// Ends this process; the trial has failed.
[[noreturn]] void abandonTrial();

} // namespace nestor

#endif
