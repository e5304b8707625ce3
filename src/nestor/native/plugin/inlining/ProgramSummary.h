//===- ProgramSummary.h - What one module cannot see of its program -------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NESTOR_PROGRAMSUMMARY_H
#define NESTOR_PROGRAMSUMMARY_H

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include <cstdint>
#include <unordered_map>

namespace nestor {

/// What the objects of a program's stock build say of each function, read from a
/// text file (docs/reference/formats.md):
///
///     nestor-program 1
///     link gc
///     function 0123456789abcdef <copies> <bytes> <calls> <users> <address taken>
class ProgramSummary {
public:
  /// What the linker may do with unused functions.
  enum class LinkMode : int64_t {
    KeepsUnused = 0,
    DropsUnused = 1,    ///< --gc-sections
    FoldsIdentical = 2, ///< --icf as well
  };

  struct Function {
    int64_t Copies;       ///< Objects that define it.
    int64_t Bytes;        ///< Of its largest copy, with unwind information.
    int64_t Calls;        ///< In all objects.
    int64_t Users;        ///< Objects that refer to it and do not define it.
    int64_t AddressTaken; ///< 1 if something other than a call refers to it.
  };

  /// Parses \p Text; fails with the line's number on anything else.
  static llvm::Expected<ProgramSummary> parse(llvm::StringRef Text);
  static llvm::Expected<ProgramSummary> load(llvm::StringRef Path);

  LinkMode linkMode() const { return Link; }
  /// Null if the stock build has no such function. \p ID is that of functionID().
  const Function *find(uint64_t ID) const {
    auto It = Functions.find(ID);
    return It == Functions.end() ? nullptr : &It->second;
  }
  size_t size() const { return Functions.size(); }

private:
  LinkMode Link = LinkMode::KeepsUnused;
  std::unordered_map<uint64_t, Function> Functions;
};

} // namespace nestor

#endif
