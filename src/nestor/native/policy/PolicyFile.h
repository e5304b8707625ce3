//===- PolicyFile.h - Loads a policy file ---------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NESTOR_POLICYFILE_H
#define NESTOR_POLICYFILE_H

#include "Policy.h"
#include "Rule.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include <memory>
#include <string>
#include <vector>

namespace nestor {

enum class Answers {
  Decision,  ///< The action is the answer.
  Deviation, ///< Action 1 is the opposite of the default's answer.
};

struct LoadedPolicy {
  std::string Problem; ///< What is decided; its meaning is the caller's matter.
  Rule ActionRule = Rule::Threshold;
  Answers Meaning = Answers::Decision;
  std::vector<std::string> Features; ///< The order of Policy::logit's input.
  /// Those of them that differ between the candidates of one question.
  std::vector<std::string> CandidateFeatures;
  /// Per feature, the lowest and the highest value for which the policy decides;
  /// beyond them the default does. Empty: the policy decides everywhere.
  std::vector<std::pair<double, double>> Range;
  std::unique_ptr<Policy> Evaluator; ///< Null for a portfolio.
  /// Of a portfolio, the evaluators of its members, which the compiler tries.
  std::vector<std::unique_ptr<Policy>> Members;

  /// The policy's own, or those of a portfolio's members.
  std::vector<Policy *> evaluators() const {
    std::vector<Policy *> All;
    if (Evaluator)
      All.push_back(Evaluator.get());
    for (const std::unique_ptr<Policy> &Member : Members)
      All.push_back(Member.get());
    return All;
  }

  bool inRange(size_t Feature, double X) const {
    return Range.empty() ||
           (Range[Feature].first <= X && X <= Range[Feature].second);
  }
};

/// Tells whether policies for a problem are needed; null if all are.
using IsNeeded = llvm::function_ref<bool(llvm::StringRef Problem)>;

/// Parses the bytes of a policy file. Fails with one sentence on any file that
/// docs/reference/formats.md does not allow; what is returned cannot fail later. Of a
/// policy that is not needed the problem alone is read.
llvm::Expected<LoadedPolicy> parsePolicy(llvm::StringRef File, IsNeeded Needed = nullptr);

/// Reads and parses \p Path.
llvm::Expected<LoadedPolicy> loadPolicy(llvm::StringRef Path, IsNeeded Needed = nullptr);

/// The same, for a policy that decides one of \p Problems by the rule \p Own;
/// \p What is the decision's name in errors. \p Path may be EmbeddedName, which means
/// the first problem that has an embedded policy.
llvm::Expected<LoadedPolicy> loadPolicyFor(llvm::ArrayRef<llvm::StringRef> Problems,
                                           Rule Own, llvm::StringRef What,
                                           llvm::StringRef Path,
                                           IsNeeded Needed = nullptr);

} // namespace nestor

#endif
