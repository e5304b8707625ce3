//===- Embedded.h - Policies that are compiled into the plugin ------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A released plugin carries its policies, so that a build needs neither an option
// nor another file. `nestor release --as plugin` puts a generated file in the place
// of Embedded.cpp (NESTOR_EMBEDDED in plugin/CMakeLists.txt).
//
//===----------------------------------------------------------------------===//

#ifndef NESTOR_EMBEDDED_H
#define NESTOR_EMBEDDED_H

#include "llvm/ADT/StringRef.h"

namespace nestor {

/// The bytes of the policy file for \p Problem that this plugin carries; empty if
/// it carries none.
llvm::StringRef embeddedPolicy(llvm::StringRef Problem);

/// What stands for that policy where a policy file is named.
constexpr llvm::StringLiteral EmbeddedName = "<embedded>";

} // namespace nestor

#endif
