//===- Overrides.h - Decisions fixed by site, callee or module ------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NESTOR_OVERRIDES_H
#define NESTOR_OVERRIDES_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include <cstdint>
#include <optional>
#include <unordered_map>

namespace nestor {

/// Answers that stand above the policy's, read from a reviewable text file:
///
///     nestor-overrides 1
///     # a comment
///     site 0123456789abcdef inline
///     site fedcba9876543210 keep          # keep the call, and its copies
///     site-only fedcba9876543210 inline   # this call, whatever its copies do
///     callee 0011223344556677 keep        # all calls of this function
///     module 8899aabbccddeeff stock       # no policy in this module
///     module 1122334455667788 no-summary  # the policy as without a summary
///     site 0123456789abcdef in 8899aabbccddeeff keep  # in this module only
///
/// A site's line answers for the copies of the call too, that is where inlining
/// and other passes have put it, unless a line names the copy. Sites stand above
/// their callee, and both above a module; a site's line for one module stands
/// above that for all. A file may serve a whole program, so lines that match
/// nothing in one module are no mistake.
class Overrides {
public:
  /// Parses \p Text for the module with the id \p Module; fails with the line's
  /// number on anything else.
  static llvm::Expected<Overrides> parse(llvm::StringRef Text, uint64_t Module);
  static llvm::Expected<Overrides> load(llvm::StringRef Path, uint64_t Module);

  bool hasSites() const {
    return !Sites.empty() || !SitesHere.empty() || !SitesOnly.empty() ||
           !SitesOnlyHere.empty();
  }
  bool hasCallees() const { return !Callees.empty(); }
  /// The answer for a call of \p Callee at \p Site, if there is one; \p CopyOf
  /// are the sites that the call is a copy of, nearest first.
  std::optional<bool> lookup(uint64_t Site, llvm::ArrayRef<uint64_t> CopyOf,
                             uint64_t Callee) const;
  /// Whether no policy decides in \p Module, and whether one does without the
  /// program's summary.
  bool isStock(uint64_t Module) const { return says(Module, true); }
  bool isWithoutSummary(uint64_t Module) const { return says(Module, false); }
  /// The lines of the file.
  size_t size() const { return Lines; }

private:
  using Table = std::unordered_map<uint64_t, bool>; ///< True is to inline.

  bool says(uint64_t Module, bool Stock) const {
    auto It = Modules.find(Module);
    return It != Modules.end() && It->second == Stock;
  }

  /// Of the lines for all modules, and of those for this one.
  Table Sites, SitesHere, SitesOnly, SitesOnlyHere, Callees;
  Table Modules; ///< True is stock.
  size_t Lines = 0;
};

} // namespace nestor

#endif
