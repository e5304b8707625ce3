//===- UserFile.h - Files that the user names, which may be hostile -------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Overrides and program summaries share a syntax: a header line of a name and a
// version, then entries of words between blanks; a hash sign begins a comment.
//
//===----------------------------------------------------------------------===//

#ifndef NESTOR_USERFILE_H
#define NESTOR_USERFILE_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/MemoryBuffer.h"
#include <cstdint>
#include <memory>
#include <string>

namespace nestor {

constexpr size_t MaxFileBytes = size_t(64) << 20;

/// Reads a plain file of at most MaxFileBytes: neither a device nor a huge file
/// gets into memory.
llvm::Expected<std::unique_ptr<llvm::MemoryBuffer>>
readPlainFile(llvm::StringRef Path);

/// Gives the words of each entry of \p Text to \p Entry, which returns what is
/// wrong with them, or nothing. Fails with the number of the first bad line.
llvm::Error
parseTextFile(llvm::StringRef Text, llvm::StringRef Header,
              llvm::function_ref<std::string(llvm::ArrayRef<llvm::StringRef>)>
                  Entry);

/// Whether \p Word is 16 hexadecimal digits; \p ID receives their value.
bool parseID(llvm::StringRef Word, uint64_t &ID);

} // namespace nestor

#endif
