//===- Embedded.cpp - A plugin without policies of its own ----------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "policy/Embedded.h"

llvm::StringRef nestor::embeddedPolicy(llvm::StringRef) { return {}; }
