//===- AllocationTrajectories.cpp - Logs of what the allocator asked ------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "AllocationTrajectories.h"
#include "plugin/core/LogFile.h"
#include "plugin/core/StableIDs.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/IR/Module.h"

using namespace llvm;

namespace nestor {

template <typename T> static TensorSpec column(StringRef Name) {
  return TensorSpec::createSpec<T>(Name.str(), {1});
}

Expected<std::unique_ptr<TrajectoryLog>>
AllocationTrajectory::open(StringRef Path, const Module &M,
                           std::vector<TensorSpec> Columns) {
  for (const char *Name : {"function", "question", "overridden"})
    Columns.push_back(column<int64_t>(Name));
  for (const char *Name : {"logit", "log_probability"})
    Columns.push_back(column<double>(Name));
  Expected<std::string> File = logPath(Path, M.getModuleIdentifier());
  if (!File)
    return File.takeError();
  return TrajectoryLog::create(*File, Columns, M.getName());
}

/// The columns that open() adds.
void AllocationTrajectory::putDecision(const AllocationDecision &D) {
  Log->put(D.Function);
  Log->put(int64_t(D.Question));
  Log->put(int64_t(D.Overridden));
  Log->put(D.Logit);
  Log->put(D.LogProbability);
  Log->end();
  ++Decisions;
}

static std::string hex(uint64_t ID) {
  return utohexstr(ID, /*LowerCase=*/true, /*Width=*/16);
}

Error AllocationTrajectory::finish(const Module &M) {
  json::Object NameOf;
  for (const auto &[ID, Name] : Names)
    NameOf[hex(ID)] = json::fixUTF8(Name);
  return Log->finish(json::Object{{"module", hex(moduleID(M))},
                                  {"decisions", Decisions},
                                  {"names", std::move(NameOf)}});
}

Expected<std::unique_ptr<EvictionLog>>
EvictionLog::create(StringRef Path, const Module &M, const EvictionTensors &Tensors,
                    bool Names, bool Costs) {
  std::vector<TensorSpec> Columns = Tensors.specs();
  Columns.push_back(column<int64_t>("index_to_evict"));
  Columns.push_back(column<int64_t>("eviction_default"));
  if (Costs)
    Columns.push_back(
        TensorSpec::createSpec<double>("cost_of_candidate", {1, MaxCandidates}));
  auto Log = open(Path, M, std::move(Columns));
  if (!Log)
    return Log.takeError();
  return std::unique_ptr<EvictionLog>(
      new EvictionLog(std::move(*Log), Names, Tensors.specs().size(), Costs));
}

void EvictionLog::write(const MLModelRunner &Values, const EvictionRecord &R) {
  Log->begin();
  for (size_t I = 0; I < Tensors; ++I)
    Log->putTensor(Values.getTensorUntyped(I));
  Log->put(int64_t(R.Answer));
  Log->put(int64_t(R.Default));
  if (Costs)
    Log->putTensor(R.Costs.data());
  putDecision(R);
}

Expected<std::unique_ptr<PriorityLog>>
PriorityLog::create(StringRef Path, const Module &M, bool Names) {
  std::vector<TensorSpec> Columns;
  for (StringRef Name : priorityFeatures())
    Columns.push_back(column<double>(Name));
  Columns.push_back(column<double>("answer"));
  Columns.push_back(column<int64_t>("priority_default"));
  Columns.push_back(column<int64_t>("priority"));
  auto Log = open(Path, M, std::move(Columns));
  if (!Log)
    return Log.takeError();
  return std::unique_ptr<PriorityLog>(new PriorityLog(std::move(*Log), Names));
}

void PriorityLog::write(const PriorityRecord &R) {
  Log->begin();
  for (double Input : R.Inputs)
    Log->put(Input);
  Log->put(R.Answer);
  Log->put(int64_t(R.Default));
  Log->put(int64_t(R.Priority));
  putDecision(R);
}

} // namespace nestor
