//===- Overrides.h - Decisions fixed by site, callee or module ------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NESTOR_OVERRIDES_H
#define NESTOR_OVERRIDES_H

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include <cstdint>
#include <optional>
#include <unordered_map>
#include <unordered_set>

namespace nestor {

/// Answers that stand above the policy's, read from a reviewable text file:
///
///     nestor-overrides 1
///     # a comment
///     site 0123456789abcdef inline
///     site fedcba9876543210 keep     # keep the call
///     callee 0011223344556677 keep   # all calls of this function
///     module 8899aabbccddeeff stock  # no policy in this module
///
/// A site stands above its callee, and both above a module. A site or callee that
/// never comes up is stale: it is ignored and counted. A file may serve a whole
/// program, so a module's line is never stale.
class Overrides {
public:
  /// Parses \p Text; fails with the line's number on anything else.
  static llvm::Expected<Overrides> parse(llvm::StringRef Text);
  static llvm::Expected<Overrides> load(llvm::StringRef Path);

  bool hasSites() const { return !Sites.empty(); }
  bool hasCallees() const { return !Callees.empty(); }
  /// The answer for a call of \p Callee at \p Site, if there is one; remembers
  /// that it was looked up.
  std::optional<bool> lookup(uint64_t Site, uint64_t Callee);
  bool isStock(uint64_t Module) const { return StockModules.count(Module); }
  size_t size() const {
    return Sites.size() + Callees.size() + StockModules.size();
  }
  size_t countStale() const;

private:
  struct Entry {
    bool Inline;
    bool Used;
  };
  using Table = std::unordered_map<uint64_t, Entry>;
  static std::optional<bool> use(Table &In, uint64_t Key);

  Table Sites, Callees;
  std::unordered_set<uint64_t> StockModules;
};

} // namespace nestor

#endif
