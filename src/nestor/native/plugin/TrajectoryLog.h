//===- TrajectoryLog.h - Writes what was asked, answered and done ---------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The file is a training log in LLVM's own format (llvm/Analysis/Utils/
// TrainingLogger.h), so any reader of such logs can read it: one observation per
// decision, with the compiler's features first and Nestor's tensors after them.
// A last context, "nestor:summary {…}", carries what belongs to the module as a
// whole; a log without it was cut short.
//
//===----------------------------------------------------------------------===//

#ifndef NESTOR_TRAJECTORYLOG_H
#define NESTOR_TRAJECTORYLOG_H

#include "llvm/ADT/StringRef.h"
#include "llvm/Analysis/TensorSpec.h"
#include "llvm/Analysis/Utils/TrainingLogger.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/JSON.h"
#include <cstdint>
#include <memory>
#include <vector>

namespace llvm {
class raw_fd_ostream;
}

namespace nestor {

/// What became of an answer.
enum class Effect : int64_t {
  NotTried = 0,
  Inlined = 1,
  CalleeDeleted = 2, ///< Inlined, and the callee had no other use.
  Failed = 3,
};

struct Decision {
  std::vector<int64_t> Features; ///< In the compiler's order.
  int64_t Default = 0, Answer = 0;
  double Logit = 0, LogProbability = 0;
  int64_t Overridden = 0;
  uint64_t Site = 0, Caller = 0, Callee = 0;
};

class TrajectoryLog {
public:
  static llvm::Expected<std::unique_ptr<TrajectoryLog>>
  create(llvm::StringRef Path, llvm::ArrayRef<llvm::TensorSpec> Features,
         llvm::StringRef Module);

  void write(const Decision &D, Effect E);
  /// Ends the log; fails if any byte of it could not be written.
  llvm::Error finish(llvm::json::Object Summary);

private:
  TrajectoryLog(std::unique_ptr<llvm::raw_fd_ostream> OS,
                std::vector<llvm::TensorSpec> Specs, llvm::StringRef Module);

  llvm::raw_fd_ostream *Stream; ///< Owned by Log; kept to see its errors.
  llvm::Logger Log;
};

} // namespace nestor

#endif
