//===- AllocationTrajectories.h - Logs of what the allocator asked --------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Training logs in LLVM's own format: LLVM's tensors, then columns of ours
// (docs/reference/formats.md).
//
//===----------------------------------------------------------------------===//

#ifndef NESTOR_ALLOCATIONTRAJECTORIES_H
#define NESTOR_ALLOCATIONTRAJECTORIES_H

#include "plugin/regalloc/EvictionQuestion.h"
#include "plugin/regalloc/PriorityPolicy.h"
#include "plugin/core/TrajectoryLog.h"
#include <array>
#include <map>

namespace llvm {
class Function;
class Module;
} // namespace llvm

namespace nestor {

/// What is common to the records of both problems.
struct AllocationDecision {
  uint64_t Function = 0;
  unsigned Question = 0; ///< Its number within the function.
  double Logit = 0, LogProbability = 0;
  bool Overridden = false;
};

struct EvictionRecord : AllocationDecision {
  unsigned Default = 0, Answer = 0; ///< Candidates.
  /// What the function would have cost with each candidate; NaN if not tried.
  std::array<double, MaxCandidates> Costs;
};

struct PriorityRecord : AllocationDecision {
  PriorityInputs Inputs;
  double Answer = 0;
  unsigned Default = 0, Priority = 0; ///< The stock priority and the one given.
};

/// A log and the names of the functions in it.
class AllocationTrajectory {
public:
  void name(uint64_t Function, llvm::StringRef Name) {
    if (WantNames)
      Names[Function] = Name.str();
  }
  llvm::Error finish(const llvm::Module &M);

protected:
  AllocationTrajectory(std::unique_ptr<TrajectoryLog> Log, bool WantNames)
      : Log(std::move(Log)), WantNames(WantNames) {}
  static llvm::Expected<std::unique_ptr<TrajectoryLog>>
  open(llvm::StringRef Path, const llvm::Module &M,
       std::vector<llvm::TensorSpec> Columns);
  void putDecision(const AllocationDecision &D);

  std::unique_ptr<TrajectoryLog> Log;
  const bool WantNames;
  uint64_t Decisions = 0;
  std::map<uint64_t, std::string> Names;
};

class EvictionLog : public AllocationTrajectory {
public:
  /// \p Costs: with a column of what other candidates would have cost.
  static llvm::Expected<std::unique_ptr<EvictionLog>>
  create(llvm::StringRef Path, const llvm::Module &M, const EvictionTensors &Tensors,
         bool Names, bool Costs);
  void write(const llvm::MLModelRunner &Values, const EvictionRecord &Record);

private:
  EvictionLog(std::unique_ptr<TrajectoryLog> Log, bool Names, size_t Tensors,
              bool Costs)
      : AllocationTrajectory(std::move(Log), Names), Tensors(Tensors), Costs(Costs) {}
  const size_t Tensors;
  const bool Costs;
};

class PriorityLog : public AllocationTrajectory {
public:
  static llvm::Expected<std::unique_ptr<PriorityLog>>
  create(llvm::StringRef Path, const llvm::Module &M, bool Names);
  void write(const PriorityRecord &Record);

private:
  using AllocationTrajectory::AllocationTrajectory;
};

} // namespace nestor

#endif
