//===- CodeBytes.h - What functions take in an object ---------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NESTOR_CODEBYTES_H
#define NESTOR_CODEBYTES_H

#include "llvm/ADT/StringRef.h"
#include "llvm/IR/Module.h"
#include "llvm/Target/TargetMachine.h"
#include <cstdint>
#include <memory>
#include <optional>

namespace nestor {

/// Compiles small modules in memory, in a context of their own: nothing of it shows in the
/// compile in whose middle it happens, neither a remark nor a diagnostic.
class CodeBytes {
public:
  /// For modules that are compiled as \p M is.
  explicit CodeBytes(const llvm::Module &M);

  /// Optimises a copy of \p M as LLVM does from the inliner on, at -Oz if \p MinSize
  /// says so and else at -Os, and compiles it: bytes of code, jump tables, unwind entries and
  /// exception tables. If \p Inlined is not empty, all calls of the function of that name
  /// are inlined before, and it is dropped. Nothing if that fails, or the target's objects
  /// are not ELF.
  std::optional<int64_t> of(const llvm::Module &M, llvm::StringRef Inlined,
                            bool MinSize);

private:
  std::optional<int64_t> compile(llvm::Module &M);

  std::unique_ptr<llvm::TargetMachine> Target; ///< Null if there is none.
};

} // namespace nestor

#endif
