//===- InliningOptions.h - What the user asks of the inliner --------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NESTOR_INLININGOPTIONS_H
#define NESTOR_INLININGOPTIONS_H

#include "plugin/core/Options.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include <string>

namespace llvm {
class Function;
} // namespace llvm

namespace nestor {

/// For which code a policy about inlining was made; a compile takes one policy.
struct InliningProblem {
  llvm::StringLiteral Name; ///< As policy files have it.
  llvm::StringLiteral Code; ///< Which functions these are, for a remark.
  /// Whether the policy decides about the calls in \p Caller, by what the front end
  /// asked for; elsewhere the default decides.
  bool (*ActsIn)(const llvm::Function &Caller);
};

llvm::ArrayRef<InliningProblem> inliningProblems();

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
