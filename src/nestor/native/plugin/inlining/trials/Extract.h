//===- Extract.h - Functions in a module of their own ---------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NESTOR_EXTRACT_H
#define NESTOR_EXTRACT_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/IR/Function.h"

namespace nestor {

/// A module with the bodies of \p Functions, which are visible to other modules there, and
/// declarations of all that they refer to; constants keep their values. Without debug
/// information and keys of sites: equal functions give equal bitcode.
llvm::SmallVector<char, 0> extract(llvm::ArrayRef<const llvm::Function *> Functions);

} // namespace nestor

#endif
