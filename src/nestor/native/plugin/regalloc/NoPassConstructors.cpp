//===- NoPassConstructors.cpp - Where the advisors cannot be replaced -----===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "PassConstructors.h"
#include "llvm/Config/llvm-config.h"

using namespace llvm;

namespace nestor {

Error replacePassConstructors() {
  return createStringError("policies about register allocation need LLVM 22, and this "
                           "is LLVM " LLVM_VERSION_STRING);
}

} // namespace nestor
