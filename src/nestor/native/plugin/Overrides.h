//===- Overrides.h - Decisions fixed by site key --------------------------===//
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

namespace nestor {

/// Answers that stand above the policy's, read from a reviewable text file:
///
///     nestor-overrides 1
///     # a comment
///     site 0123456789abcdef inline
///     site fedcba9876543210 keep     # keep the call
///
/// A key that never comes up is stale: it is ignored and counted.
class Overrides {
public:
  /// Parses \p Text; fails with the line's number on anything else.
  static llvm::Expected<Overrides> parse(llvm::StringRef Text);
  static llvm::Expected<Overrides> load(llvm::StringRef Path);

  bool empty() const { return Entries.empty(); }
  /// The answer for \p Site, if there is one; remembers that it was asked for.
  std::optional<bool> lookup(uint64_t Site);
  size_t size() const { return Entries.size(); }
  size_t countStale() const;

private:
  struct Entry {
    bool Inline;
    bool Used;
  };
  std::unordered_map<uint64_t, Entry> Entries;
};

} // namespace nestor

#endif
