//===- PriorityPolicy.h - A policy that orders live ranges ----------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The stock heuristic gives each live range a number, of which the lowest 24 bits
// are its size or its place in the block and the bits above are classes (llvm/lib/
// CodeGen/RegAllocGreedy.cpp, DefaultPriorityAdvisor). A policy's answer scales the
// lowest bits by a power of two: 0 keeps the stock priority, 1 doubles it within
// its class.
//
//===----------------------------------------------------------------------===//

#ifndef NESTOR_PRIORITYPOLICY_H
#define NESTOR_PRIORITYPOLICY_H

#include "EvictionPolicy.h"
#include <array>

namespace nestor {

/// What a policy may read of a live range, in the order of priorityFeatures().
using PriorityInputs = std::array<double, 7>;

/// Names of the features: LLVM's own, then those of the stock priority.
llvm::ArrayRef<llvm::StringLiteral> priorityFeatures();

/// \p Stock with its lowest 24 bits times 2 to the power of \p Answer.
unsigned scaledPriority(unsigned Stock, double Answer);

struct PriorityAnswer {
  double Value = 0, LogProbability = 0;
};

class PriorityPolicy {
public:
  /// See EvictionPolicy::load().
  static llvm::Expected<std::vector<PriorityPolicy>> load(llvm::StringRef Path);
  PriorityAnswer answer(const PriorityInputs &X, const Draw &How);

private:
  std::shared_ptr<const LoadedPolicy> File;
  Policy *Evaluator = nullptr;
  std::vector<size_t> Inputs;
  std::vector<double> Row;
};

} // namespace nestor

#endif
