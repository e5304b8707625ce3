//===- Rule.h - Turns the rows of a question into an action ---------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A policy scores rows; a rule turns the logits of the rows of one question into
// an action. The same rules as in src/nestor/policy/rule.py: greedy and sampled
// actions agree exactly.
//
//===----------------------------------------------------------------------===//

#ifndef NESTOR_RULE_H
#define NESTOR_RULE_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include <optional>

namespace nestor {

enum class Rule {
  Threshold, ///< One row; action 1 above a logit of 0, else 0. NaN gives 0.
  Pick,      ///< The index of the row of the greatest logit, the first of equals.
             ///< NaN counts as -inf; if all are, row 0 is the only choice.
  Value,     ///< One row; the logit itself, 0 if it is not finite.
};

/// The rule of this name in a policy file.
std::optional<Rule> ruleNamed(llvm::StringRef Name);
llvm::StringRef nameOf(Rule R);

/// The most probable action for the rows' \p Logits, of which there is at least
/// one; exactly one but for Pick. An index is returned as a double too.
double greedyAction(Rule R, llvm::ArrayRef<double> Logits);

/// The action that \p Uniform in [0, 1) selects from the distribution:
/// a coin of sigmoid(logit / Temperature), softmax(logits / Temperature), or
/// normal around the logit with the deviation Temperature.
double sampleAction(Rule R, llvm::ArrayRef<double> Logits, double Uniform,
                    double Temperature);

/// The natural logarithm of the probability of \p Action (Value: its density).
double logProbability(Rule R, llvm::ArrayRef<double> Logits, double Action,
                      double Temperature);

/// The entropy of the distribution in nats.
double entropy(Rule R, llvm::ArrayRef<double> Logits, double Temperature);

/// 1 / (1 + exp(-Logit / Temperature)); 0 if \p Logit is not a number.
double positiveProbability(double Logit, double Temperature);

} // namespace nestor

#endif
