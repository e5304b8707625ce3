//===- PlainFile.h - Reads files that may be hostile ----------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NESTOR_PLAINFILE_H
#define NESTOR_PLAINFILE_H

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/MemoryBuffer.h"
#include <cstddef>
#include <memory>

namespace nestor {

constexpr size_t MaxFileBytes = size_t(64) << 20;

/// Reads a plain file of at most \p MaxBytes, a number of whole MiB: neither a
/// device nor a huge file gets into memory.
llvm::Expected<std::unique_ptr<llvm::MemoryBuffer>>
readPlainFile(llvm::StringRef Path, size_t MaxBytes = MaxFileBytes);

} // namespace nestor

#endif
