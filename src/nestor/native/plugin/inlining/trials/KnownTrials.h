//===- KnownTrials.h - What an earlier compile has tried ------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NESTOR_KNOWNTRIALS_H
#define NESTOR_KNOWNTRIALS_H

#include "llvm/ADT/StringRef.h"
#include "llvm/IR/Module.h"
#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <utility>

namespace nestor {

/// What trials came to, by a hash of all that was compiled. They may be kept in a folder, in
/// a file for each module (docs/reference/formats.md): when it is compiled again most of its
/// functions are the same. A file that cannot be read or written is as good as none.
class KnownTrials {
public:
  using Key = std::pair<uint64_t, uint64_t>;
  struct Trial {
    int64_t Apart = 0, Saved = 0; ///< See InliningTrials::Result.
    int64_t Compiled = 0;         ///< Instructions.
    bool operator==(const Trial &Other) const {
      return std::tie(Apart, Saved, Compiled) ==
             std::tie(Other.Apart, Other.Saved, Other.Compiled);
    }
  };

  /// For the module \p M; an empty \p Folder keeps nothing.
  KnownTrials(llvm::StringRef Folder, const llvm::Module &M);
  /// Keeps what was asked for, and, while the file does not get too long, what was known before:
  /// in the same folder other programs may be linked, and the same one under other overrides.
  ~KnownTrials();
  KnownTrials(KnownTrials &&) = default;

  /// The trial for \p K, or null.
  const Trial *find(const Key &K);
  const Trial &note(const Key &K, const Trial &T) {
    return Used.insert_or_assign(K, T).first->second;
  }

private:
  void load();
  void save(const std::map<Key, Trial> &Kept) const;

  std::string Path; ///< Empty if nothing is kept.
  std::map<Key, Trial> Earlier, Used;
};

} // namespace nestor

#endif
