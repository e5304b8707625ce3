//===- Decision.h - A question about a call site, and its answer ----------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NESTOR_DECISION_H
#define NESTOR_DECISION_H

#include "plugin/core/TrajectoryLog.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/Analysis/TensorSpec.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/JSON.h"
#include <cstdint>
#include <vector>

namespace nestor {

/// What became of an answer.
enum class Effect : int64_t {
  NotTried = 0,
  Inlined = 1,
  CalleeDeleted = 2, ///< Inlined, and the callee had no other use.
  Failed = 3,
};

/// One question about a call site and its answer.
struct Decision {
  std::vector<int64_t> Features; ///< In the order in which they are offered.
  int64_t Default = 0; ///< The stock heuristic's answer: 1 is to inline.
  int64_t Action = 0;  ///< What the policy's rule made of its logit.
  int64_t Answer = 0;  ///< What the compiler does.
  double Logit = 0, LogProbability = 0;
  int64_t Overridden = 0; ///< 1 if the answer is an override's.
  uint64_t Site = 0, Caller = 0, Callee = 0;
  /// The sites that this one is a copy of, nearest first.
  llvm::SmallVector<uint64_t, 2> CopyOf;
};

/// The columns of the log: \p Features, then those of write() as docs/reference/formats.md
/// names them.
std::vector<llvm::TensorSpec>
logColumns(llvm::ArrayRef<llvm::TensorSpec> Features);

/// Writes \p D and what became of it.
void write(TrajectoryLog &Log, const Decision &D, Effect E);

/// Ends the log of \p M with \p Summary, or reports an error of the compilation.
void finish(TrajectoryLog &Log, llvm::Module &M, llvm::json::Object Summary);

} // namespace nestor

#endif
