//===- TrajectoryLog.cpp - Writes what was asked, answered and done -------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TrajectoryLog.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/raw_ostream.h"

using namespace llvm;

namespace nestor {

Expected<std::unique_ptr<TrajectoryLog>>
TrajectoryLog::create(StringRef Path, ArrayRef<TensorSpec> Features,
                      StringRef Module) {
  std::error_code EC;
  auto OS = std::make_unique<raw_fd_ostream>(Path, EC);
  if (EC)
    return createStringError(EC, EC.message());
  std::vector<TensorSpec> Specs(Features.begin(), Features.end());
  // docs/reference/formats.md names these; keep the order of write().
  for (const char *Name : {"inlining_default", "answer"})
    Specs.push_back(TensorSpec::createSpec<int64_t>(Name, {1}));
  for (const char *Name : {"logit", "log_probability"})
    Specs.push_back(TensorSpec::createSpec<double>(Name, {1}));
  for (const char *Name : {"overridden", "effect", "site", "caller", "callee"})
    Specs.push_back(TensorSpec::createSpec<int64_t>(Name, {1}));
  return std::unique_ptr<TrajectoryLog>(
      new TrajectoryLog(std::move(OS), std::move(Specs), Module));
}

TrajectoryLog::TrajectoryLog(std::unique_ptr<raw_fd_ostream> OS,
                             std::vector<TensorSpec> Specs, StringRef Module)
    : Stream(OS.get()),
      Log(std::move(OS), Specs, TensorSpec::createSpec<float>("reward", {1}),
          /*IncludeReward=*/false) {
  Log.switchContext(Module);
}

void TrajectoryLog::write(const Decision &D, Effect E) {
  Log.startObservation();
  size_t Tensor = 0;
  auto Put = [&](const auto &Value) {
    Log.logTensorValue(Tensor++, reinterpret_cast<const char *>(&Value));
  };
  for (int64_t F : D.Features)
    Put(F);
  Put(D.Default);
  Put(D.Answer);
  Put(D.Logit);
  Put(D.LogProbability);
  Put(D.Overridden);
  Put(E);
  Put(D.Site);
  Put(D.Caller);
  Put(D.Callee);
  Log.endObservation();
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
