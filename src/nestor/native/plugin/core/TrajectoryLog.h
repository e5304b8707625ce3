//===- TrajectoryLog.h - Writes what was asked, answered and done ---------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The file is a training log in LLVM's own format (llvm/Analysis/Utils/
// TrainingLogger.h), so any reader of such logs can read it: one observation per
// decision, with one value per column.
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

class TrajectoryLog {
public:
  /// Opens the log of \p Module in the file \p Path (openLog).
  static llvm::Expected<std::unique_ptr<TrajectoryLog>>
  create(llvm::StringRef Path, const std::vector<llvm::TensorSpec> &Columns,
         llvm::StringRef Module);

  /// Begins a decision; one put() or putTensor() per column, in their order, and
  /// end() follow.
  void begin();
  template <typename T> void put(T Value) {
    static_assert(sizeof(T) == 8, "a column is int64 or double, one element");
    Log.logTensorValue(Column++, reinterpret_cast<const char *>(&Value));
  }
  /// All elements of a column of any shape.
  void putTensor(const void *Elements) {
    Log.logTensorValue(Column++, static_cast<const char *>(Elements));
  }
  void end() { Log.endObservation(); }
  /// Ends the log; fails if any byte of it could not be written.
  llvm::Error finish(llvm::json::Object Summary);

private:
  TrajectoryLog(std::unique_ptr<llvm::raw_fd_ostream> OS,
                const std::vector<llvm::TensorSpec> &Columns,
                llvm::StringRef Module);

  llvm::raw_fd_ostream *Stream; ///< Owned by Log; kept to see its errors.
  llvm::Logger Log;
  size_t Column = 0; ///< The next that put() writes.
};

} // namespace nestor

#endif
