//===- CodeBytes.h - What functions take in an object ---------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NESTOR_CODEBYTES_H
#define NESTOR_CODEBYTES_H

#include "llvm/ADT/StringRef.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/MemoryBufferRef.h"
#include "llvm/Target/TargetMachine.h"
#include <cstdint>
#include <memory>
#include <optional>

namespace nestor {

/// Compiles small modules in memory, in a context of their own: nothing of it shows in the
/// compile in whose middle it happens, neither a remark nor a diagnostic.
///
/// Most of such a compile is not work on the function: setting up a code generator takes longer
/// than it needs for a few instructions. So the context and the code generator are made once,
/// and anew only after a module at which they failed.
class CodeBytes {
public:
  /// For modules that are compiled as \p M is.
  explicit CodeBytes(const llvm::Module &M);
  CodeBytes(CodeBytes &&);
  ~CodeBytes();

  /// Optimises the module that \p Bitcode holds as LLVM does from the inliner on, at -Oz if
  /// \p MinSize says so and else at -Os, and compiles it: bytes of code, jump tables, unwind
  /// entries and exception tables. If \p Inlined is not empty, all calls of the function of that
  /// name are inlined before, and it is dropped. Nothing if that fails, or the target's objects
  /// are not ELF.
  std::optional<int64_t> of(llvm::MemoryBufferRef Bitcode, llvm::StringRef Inlined,
                            bool MinSize);

private:
  struct Session;
  std::optional<int64_t> of(Session &S, llvm::MemoryBufferRef Bitcode, llvm::StringRef Inlined,
                            bool MinSize);

  std::unique_ptr<llvm::TargetMachine> Target; ///< Null if there is none.
  std::unique_ptr<Session> Current;            ///< Null before the first compile.
};

} // namespace nestor

#endif
