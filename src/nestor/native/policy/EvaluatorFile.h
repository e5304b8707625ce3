//===- EvaluatorFile.h - Makes a policy from its file's tensors -----------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NESTOR_EVALUATORFILE_H
#define NESTOR_EVALUATORFILE_H

#include "Policy.h"
#include "TensorReader.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include <memory>
#include <vector>

namespace nestor {

/// The evaluators of a portfolio's members over so many \p Features, or one sentence
/// on what docs/reference/formats.md does not allow.
llvm::Expected<std::vector<std::unique_ptr<Policy>>>
readPortfolio(TensorReader &Reader, llvm::StringRef Transform, size_t Features);

/// The evaluator of a policy of this \p Kind and \p Transform over so many
/// \p Features, or one sentence on what docs/reference/formats.md does not allow.
llvm::Expected<std::unique_ptr<Policy>> readEvaluator(TensorReader &Reader,
                                                      llvm::StringRef Kind,
                                                      llvm::StringRef Transform,
                                                      size_t Features);

} // namespace nestor

#endif
