//===- KnownSizes.h - What an earlier compile has measured ----------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NESTOR_KNOWNSIZES_H
#define NESTOR_KNOWNSIZES_H

#include "llvm/ADT/StringRef.h"
#include "llvm/IR/Module.h"
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>

namespace nestor {

/// Sizes of what was compiled, by a hash of it. They may be kept in a folder, in a file for
/// each module (docs/reference/formats.md): when it is compiled again most of its functions
/// are the same. A file that cannot be read or written is as good as none.
class KnownSizes {
public:
  using Key = std::pair<uint64_t, uint64_t>;
  using Size = std::optional<int64_t>; ///< None: it could not be measured.

  /// For the module \p M; an empty \p Folder keeps nothing.
  KnownSizes(llvm::StringRef Folder, const llvm::Module &M);
  /// Keeps what was asked for, and nothing else.
  ~KnownSizes();
  KnownSizes(KnownSizes &&) = default;

  /// The size for \p K, or null.
  const Size *find(const Key &K);
  const Size &note(const Key &K, Size S) { return Used.insert_or_assign(K, S).first->second; }

private:
  void load();
  void save() const;

  std::string Path; ///< Empty if nothing is kept.
  std::map<Key, Size> Earlier, Used;
};

} // namespace nestor

#endif
