//===- TensorRunner.h - Takes the place of LLVM's model -------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// LLVM's own ML advisor describes the candidates in tensors and asks a model runner
// which to evict. Its provider is made by an exported function, but where it keeps
// the runner is private: the slot is filled only if the provider looks exactly as
// expected.
//
//===----------------------------------------------------------------------===//

#ifndef NESTOR_TENSORRUNNER_H
#define NESTOR_TENSORRUNNER_H

#include "plugin/core/TensorBuffers.h"
#include "llvm/CodeGen/RegAllocEvictionAdvisor.h"
#include "llvm/Support/Error.h"
#include <functional>
#include <memory>
#include <vector>

namespace nestor {

/// Holds the tensors that LLVM's advisor fills, and passes its question on.
class TensorRunner final : public TensorBuffers {
public:
  using TensorBuffers::TensorBuffers;

  /// Returns the index of a candidate that the mask allows.
  std::function<unsigned(const llvm::MLModelRunner &)> Answer;

private:
  void *evaluateUntyped() override;
  int64_t Index = 0;
};

/// A provider of LLVM's advisors that ask \p Runner.
struct DescribingProvider {
  std::unique_ptr<llvm::RegAllocEvictionAdvisorProvider> Provider;
  TensorRunner *Runner; ///< Owned by the provider.
  std::vector<llvm::TensorSpec> Specs;
};

/// Fails if this LLVM's provider is not laid out as expected.
llvm::Expected<DescribingProvider> createDescribingProvider(llvm::LLVMContext &C);

} // namespace nestor

#endif
