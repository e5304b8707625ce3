//===- EvictionPolicy.h - A policy that picks what to evict ---------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NESTOR_EVICTIONPOLICY_H
#define NESTOR_EVICTIONPOLICY_H

#include "EvictionQuestion.h"
#include "policy/PolicyFile.h"
#include <optional>

namespace nestor {

/// How actions are drawn; without a number the most probable one is taken.
struct Draw {
  std::optional<double> Uniform;
  double Temperature = 1;
};

/// A policy's answer to one question.
struct EvictionAnswer {
  unsigned Candidate = OwnCandidate;
  double Logit = 0, LogProbability = 0;
};

class EvictionPolicy {
public:
  /// Loads \p Path, a policy or a portfolio of several, and checks it against what
  /// the compiler offers, or says in one sentence what is wrong.
  static llvm::Expected<std::vector<EvictionPolicy>>
  load(llvm::StringRef Path, const EvictionTensors &Offered);

  /// An answer that \p Q allows. Beyond the policy's range it is the stock
  /// heuristic's, which \p Q must allow.
  EvictionAnswer answer(const EvictionQuestion &Q, const Draw &How);

private:
  std::shared_ptr<const LoadedPolicy> File; ///< Shared by a portfolio's members.
  Policy *Evaluator = nullptr;              ///< Owned by the file.
  std::vector<EvictionFeature> Inputs; ///< Per feature of the policy.
  std::vector<double> Row, Logits;     ///< Scratch.
};

} // namespace nestor

#endif
