//===- TensorBuffers.h - The memory that LLVM's advisors fill -------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NESTOR_TENSORBUFFERS_H
#define NESTOR_TENSORBUFFERS_H

#include "llvm/Analysis/MLModelRunner.h"
#include "llvm/Analysis/TensorSpec.h"
#include <vector>

namespace nestor {

/// A model runner that has a buffer for each tensor, and whose heir knows an answer.
class TensorBuffers : public llvm::MLModelRunner {
public:
  TensorBuffers(llvm::LLVMContext &C, const std::vector<llvm::TensorSpec> &Specs)
      : MLModelRunner(C, Kind::NoOp, Specs.size()), Storage(Specs.size()) {
    for (size_t I = 0; I < Specs.size(); ++I) {
      Storage[I].resize((Specs[I].getTotalTensorBufferSize() + 7) / 8);
      setUpBufferForTensor(I, Specs[I], Storage[I].data());
    }
  }

private:
  std::vector<std::vector<uint64_t>> Storage;
};

} // namespace nestor

#endif
