//===- AllocationSearch.h - Better decisions by trials --------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NESTOR_ALLOCATIONSEARCH_H
#define NESTOR_ALLOCATIONSEARCH_H

#include "plugin/regalloc/records/AllocationOverrides.h"
#include "Trial.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/SmallVector.h"

namespace nestor {

/// Questions about evictions, by their number, that another alternative answers.
struct SearchWindow {
  unsigned From, To; ///< To is the first that it does not answer.
  size_t Alternative;
};

/// What a function may be allocated under: an alternative, others that replace it
/// for some questions, the last of those that hold one, and answers that stand above
/// them.
struct SearchPoint {
  size_t Alternative = 0;
  llvm::SmallVector<SearchWindow, 2> Windows;
  AllocationChoices Fixed;

  /// Who answers \p Question.
  size_t alternativeAt(unsigned Question) const {
    for (const SearchWindow &W : llvm::reverse(Windows))
      if (W.From <= Question && Question < W.To)
        return W.Alternative;
    return Alternative;
  }
};

struct SearchSettings {
  unsigned Trials = 0;
  size_t Alternatives = 1;
  bool Evictions = true, Priorities = false; ///< What may be moved.
  uint64_t Seed = 0;
};

/// What a search found.
struct SearchResult {
  SearchPoint Best;
  Allocation AtBest, AtStock;
  unsigned Trials = 0;
};

/// Local search: from the best alternative on, moves one to four answers at a time,
/// or lets another alternative answer some questions in a row, and stays where the
/// cost is not higher. \p Try allocates under a point and
/// returns true in the forked child that does so, in which the search ends at once
/// with true.
bool searchAllocations(
    const SearchSettings &S,
    llvm::function_ref<bool(const SearchPoint &, Allocation &)> Try,
    SearchResult &Result);

} // namespace nestor

#endif
