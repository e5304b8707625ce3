//===- InliningOptions.h - What the user asks of the inliner --------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NESTOR_INLININGOPTIONS_H
#define NESTOR_INLININGOPTIONS_H

#include "plugin/core/Options.h"
#include "llvm/ADT/StringRef.h"
#include <string>

namespace nestor {

/// For which code a policy about inlining was made; a compile takes one policy.
constexpr llvm::StringLiteral ForSize = "inlining-size", ForSpeed = "inlining-speed";
constexpr llvm::StringRef InliningProblems[] = {ForSize, ForSpeed};

/// The values of all options that the inline advisors read.
struct InliningSettings : Settings {
  std::string Overrides;
  std::string Program; ///< The program's summary: changes no answer by itself.
  std::string Vocabulary; ///< For the embeddings of functions, if wanted.
  std::string LogFor; ///< The policy whose features alone are logged; empty for all.
  bool SeedCallees = false; ///< Draw one number for all sites of a callee.

  /// Whether the inliner's advisor is to be replaced at all.
  bool enabled() const {
    return !Policy.empty() || !Overrides.empty() || !Log.empty();
  }
};

/// See registerOptions().
void registerInliningOptions();
InliningSettings currentInliningSettings();

} // namespace nestor

#endif
