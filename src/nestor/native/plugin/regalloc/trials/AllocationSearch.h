//===- AllocationSearch.h - Better decisions by trials --------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NESTOR_ALLOCATIONSEARCH_H
#define NESTOR_ALLOCATIONSEARCH_H

#include "plugin/regalloc/records/AllocationOverrides.h"
#include "Trial.h"
#include "llvm/ADT/STLFunctionalExtras.h"

namespace nestor {

/// What a function may be allocated under: an alternative, and answers that stand
/// above it.
struct SearchPoint {
  size_t Alternative = 0;
  AllocationChoices Fixed;
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

/// Local search: from the best alternative on, moves one to four answers at a time
/// and stays where the cost is not higher. \p Try allocates under a point and
/// returns true in the forked child that does so, in which the search ends at once
/// with true.
bool searchAllocations(
    const SearchSettings &S,
    llvm::function_ref<bool(const SearchPoint &, Allocation &)> Try,
    SearchResult &Result);

} // namespace nestor

#endif
