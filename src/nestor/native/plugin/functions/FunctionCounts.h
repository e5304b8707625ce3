//===- FunctionCounts.h - What a function's machine code will be made of --===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Counts from which the size of a function's machine code can be predicted, read
// off the IR as code generation will see it. The first groups are the inputs of
// the estimator that LLVM published in 2020 (llvm/lib/Analysis/
// InlineSizeEstimatorAnalysis.cpp): nine counts, the instructions by opcode, and
// 137 chosen pairs of consecutive opcodes. The rest is what they leave open:
// which constants need how many bytes, what the address modes fold, what lives
// across calls, what exception handling has to describe.
//
//===----------------------------------------------------------------------===//

#ifndef NESTOR_FUNCTIONCOUNTS_H
#define NESTOR_FUNCTIONCOUNTS_H

#include <cstdint>
#include <string>
#include <vector>

namespace llvm {
class Function;
class TargetTransformInfo;
} // namespace llvm

namespace nestor {

/// The names of the counts; docs/studies/size-estimator.md explains them.
std::vector<std::string> functionCountNames();

/// The counts of the defined function \p F, in the order of the names.
std::vector<int64_t> countFunction(llvm::Function &F,
                                   const llvm::TargetTransformInfo &TTI);

} // namespace nestor

#endif
