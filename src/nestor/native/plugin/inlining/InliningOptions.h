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
#include <vector>

namespace llvm {
class Function;
} // namespace llvm

namespace nestor {

/// For which code a policy about inlining was made: the problems' are apart, so a compile
/// takes a policy for each.
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
  /// Files, "default" for the stock heuristic's answers, EmbeddedName for all that the
  /// plugin carries.
  std::vector<std::string> Policies;
  std::string Overrides;
  std::string Program; ///< The program's summary: changes no answer by itself.
  std::string Trials;  ///< Folder for what inlining trials come to, for the next compile.
  std::string Vocabulary; ///< For the embeddings of functions, if wanted.
  std::vector<std::string> LogFor; ///< Policies whose features alone are logged, if any.
  bool SeedCallees = false; ///< Draw one number for all sites of a callee.

  /// Whether the inliner's advisor is to be replaced at all.
  bool enabled() const {
    return !Policies.empty() || !Overrides.empty() || !Log.empty();
  }
};

/// See registerOptions().
void registerInliningOptions();
InliningSettings currentInliningSettings();

} // namespace nestor

#endif
