//===- TextFile.h - Text files of one entry per line ----------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Overrides, program summaries and vocabularies share a syntax: a header line of
// a name and a version, then entries of words between blanks; a hash sign begins
// a comment.
//
//===----------------------------------------------------------------------===//

#ifndef NESTOR_TEXTFILE_H
#define NESTOR_TEXTFILE_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include <cstdint>
#include <string>

namespace nestor {

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
