//===- PolicyChecks.h - Which policy files are refused, and why ----------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NESTOR_TESTS_POLICYCHECKS_H
#define NESTOR_TESTS_POLICYCHECKS_H

#include "FileBuilder.h"
#include "policy/Policy.h"
#include "policy/PolicyFile.h"
#include <doctest/doctest.h>

namespace nestor {

inline std::string parseError(const FileBuilder &B) {
  return errorOf(parsePolicy(B.build()));
}

/// \p B is refused, and the reason speaks of \p Why.
inline void refused(const FileBuilder &B, llvm::StringRef Why) {
  std::string Error = parseError(B);
  CAPTURE(Error);
  CAPTURE(Why.str());
  CHECK(llvm::StringRef(Error).contains(Why));
}

} // namespace nestor

#endif
