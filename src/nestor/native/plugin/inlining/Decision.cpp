//===- Decision.cpp - A question about a call site, and its answer --------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Decision.h"
#include "plugin/core/StableIDs.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/IR/LLVMContext.h"

using namespace llvm;

namespace nestor {

std::vector<TensorSpec> logColumns(ArrayRef<TensorSpec> Features) {
  std::vector<TensorSpec> Columns(Features.begin(), Features.end());
  for (const char *Name : {"inlining_default", "answer"})
    Columns.push_back(TensorSpec::createSpec<int64_t>(Name, {1}));
  for (const char *Name : {"logit", "log_probability"})
    Columns.push_back(TensorSpec::createSpec<double>(Name, {1}));
  for (const char *Name : {"overridden", "effect", "site", "caller", "callee",
                           "copy_of"})
    Columns.push_back(TensorSpec::createSpec<int64_t>(Name, {1}));
  return Columns;
}

// The order is that of logColumns().
void write(TrajectoryLog &Log, const Decision &D, Effect E) {
  Log.begin();
  for (int64_t F : D.Features)
    Log.put(F);
  Log.put(D.Default);
  Log.put(D.Answer);
  Log.put(D.Logit);
  Log.put(D.LogProbability);
  Log.put(D.Overridden);
  Log.put(E);
  Log.put(D.Site);
  Log.put(D.Caller);
  Log.put(D.Callee);
  Log.put(D.CopyOf.empty() ? 0 : D.CopyOf.front());
  Log.end();
}

void finish(TrajectoryLog &Log, Module &M, json::Object Summary) {
  Summary["module"] = utohexstr(moduleID(M), /*LowerCase=*/true, /*Width=*/16);
  if (Error E = Log.finish(std::move(Summary)))
    M.getContext().emitError("nestor: cannot write the log: " +
                             toString(std::move(E)));
}

} // namespace nestor
