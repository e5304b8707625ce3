//===- AllocationOverrides.h - Decisions fixed by function ----------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NESTOR_ALLOCATIONOVERRIDES_H
#define NESTOR_ALLOCATIONOVERRIDES_H

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include <cstdint>
#include <map>
#include <unordered_map>
#include <unordered_set>

namespace nestor {

/// Answers to some questions of one function, by the question's number. Numbers
/// depend on the answers before them, so choices hold together or not at all.
struct AllocationChoices {
  std::map<unsigned, unsigned> Evictions; ///< The candidate to evict.
  std::map<unsigned, double> Priorities;  ///< A priority policy's answer.

  bool empty() const { return Evictions.empty() && Priorities.empty(); }
};

/// What stands above the policies: a text file, docs/reference/formats.md.
class AllocationOverrides {
public:
  static llvm::Expected<AllocationOverrides> parse(llvm::StringRef Text);
  static llvm::Expected<AllocationOverrides> load(llvm::StringRef Path);

  /// Whether the stock heuristics decide in this function.
  bool isStock(uint64_t Module, uint64_t Function) const {
    return StockModules.count(Module) || StockFunctions.count(Function);
  }
  /// Null if nothing is fixed.
  const AllocationChoices *find(uint64_t Function) const {
    auto It = Choices.find(Function);
    return It == Choices.end() ? nullptr : &It->second;
  }

private:
  std::string read(llvm::ArrayRef<llvm::StringRef> Words);

  // Not LLVM's tables, which keep two keys for themselves: a file may hold any.
  std::unordered_set<uint64_t> StockModules, StockFunctions;
  std::unordered_map<uint64_t, AllocationChoices> Choices;
};

} // namespace nestor

#endif
