//===- TrajectoryLog.cpp - Writes what was asked, answered and done -------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TrajectoryLog.h"
#include "LogFile.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/raw_ostream.h"
#include <mutex>

using namespace llvm;

namespace nestor {

Expected<std::unique_ptr<TrajectoryLog>>
TrajectoryLog::create(StringRef Path, const std::vector<TensorSpec> &Columns,
                      StringRef Module) {
  // Thin LTO opens logs on several threads: each must see whose a file is.
  static std::mutex Opening;
  std::lock_guard<std::mutex> Guard(Opening);
  Expected<std::unique_ptr<raw_fd_ostream>> OS = openLog(Path, Module);
  if (!OS)
    return OS.takeError();
  std::unique_ptr<TrajectoryLog> Log(
      new TrajectoryLog(std::move(*OS), Columns, Module));
  Log->Stream->flush();
  return Log;
}

TrajectoryLog::TrajectoryLog(std::unique_ptr<raw_fd_ostream> OS,
                             const std::vector<TensorSpec> &Columns,
                             StringRef Module)
    : Stream(OS.get()),
      Log(std::move(OS), Columns, TensorSpec::createSpec<float>("reward", {1}),
          /*IncludeReward=*/false) {
  Log.switchContext(Module);
}

void TrajectoryLog::begin() {
  Log.startObservation();
  Column = 0;
}

Error TrajectoryLog::finish(json::Object Summary) {
  Log.switchContext(
      formatv("nestor:summary {0}", json::Value(std::move(Summary))).str());
  Log.flush();
  if (!Stream->has_error())
    return Error::success();
  std::error_code EC = Stream->error();
  Stream->clear_error(); // Else its destructor would end the compiler.
  return createStringError(EC, EC.message());
}

} // namespace nestor
