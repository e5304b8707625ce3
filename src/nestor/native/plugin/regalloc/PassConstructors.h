//===- PassConstructors.h - Gets into the stock pipeline ------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// LLVM's legacy pass manager makes an analysis that a pass requires, and a pass
// that is added by its ID, by a constructor in the registry of passes. Where that
// constructor is replaced, the stock pipeline itself makes our advisors: no
// pipeline is rebuilt, and every option of the compiler and of the linker means
// what it meant.
//
//===----------------------------------------------------------------------===//

#ifndef NESTOR_PASSCONSTRUCTORS_H
#define NESTOR_PASSCONSTRUCTORS_H

#include "llvm/Support/Error.h"

namespace nestor {

/// Makes all code generation of this process use our advisors.
llvm::Error replacePassConstructors();

} // namespace nestor

#endif
