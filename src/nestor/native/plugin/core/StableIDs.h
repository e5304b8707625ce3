//===- StableIDs.h - Names of functions and modules as 64 bits ------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The same in every compile of a program, so that logs, overrides and summaries
// can name functions. src/nestor computes them too.
//
//===----------------------------------------------------------------------===//

#ifndef NESTOR_STABLEIDS_H
#define NESTOR_STABLEIDS_H

#include <cstdint>

namespace llvm {
class Function;
class Module;
} // namespace llvm

namespace nestor {

/// xxh3 of \p F's name; local functions carry their source file's name too, since
/// another module of the program may have its own function of that name.
uint64_t functionID(const llvm::Function &F);

/// xxh3 of the name of \p M's source file, without its folder.
uint64_t moduleID(const llvm::Module &M);

/// xxh3 of the two numbers.
uint64_t combineIDs(uint64_t A, uint64_t B);

} // namespace nestor

#endif
