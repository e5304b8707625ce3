//===- AllocationSession.h - Who decides in which function ----------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// One session serves the code generation of one module. It holds the policies, and
// for the function that is being allocated what was asked so far. With several
// alternatives it has the function allocated under each in a forked child, from the
// first question on which they differ, and goes on under the cheapest.
//
//===----------------------------------------------------------------------===//

#ifndef NESTOR_ALLOCATIONSESSION_H
#define NESTOR_ALLOCATIONSESSION_H

#include "plugin/regalloc/records/AllocationLog.h"
#include "plugin/regalloc/records/AllocationOverrides.h"
#include "plugin/regalloc/records/AllocationTrajectories.h"
#include "EvictionPolicy.h"
#include "PriorityPolicy.h"
#include "RegallocOptions.h"
#include "TensorRunner.h"
#include "plugin/regalloc/trials/AllocationSearch.h"
#include "llvm/CodeGen/RegAllocEvictionAdvisor.h"
#include <memory>

namespace nestor {

/// Who decides: a policy, or null for the stock heuristic.
struct Alternative {
  EvictionPolicy *Evict = nullptr;
  PriorityPolicy *Order = nullptr;
};

class AllocationSession {
public:
  /// The session of \p M on this thread, made if there is none. What is wrong with
  /// the settings becomes an error of the compilation, and nothing is decided.
  static std::shared_ptr<AllocationSession> of(llvm::Module &M);
  /// The session of the function that is being compiled on this thread, or null.
  static AllocationSession *current();
  ~AllocationSession();

  /// Whether the settings could be loaded; else the stock heuristics decide.
  bool works() const { return Works; }
  /// Writes what is left to write.
  void finish();

  /// To be called when the allocation of \p MF begins.
  void begin(const llvm::MachineFunction &MF);
  /// LLVM's own advisor, which describes the candidates and asks evict().
  std::unique_ptr<llvm::RegAllocEvictionAdvisor>
  describingAdvisor(const llvm::MachineFunction &MF, const llvm::RAGreedy &RA,
                    llvm::MachineBlockFrequencyInfo *MBFI,
                    llvm::MachineLoopInfo *Loops) {
    return Stock->getAdvisor(MF, RA, MBFI, Loops);
  }

  /// Whether the answer to the next question may depend on what it is about.
  bool wantsQuestion() const;
  /// The question was answered by the stock heuristic's choice.
  void skipQuestion() {
    ++Run.Done.Questions;
    Run.Done.Kept += Run.mustEnd();
  }
  /// Lets \p Ask describe the candidates, which leads to evict(), and returns
  /// whether it did and left the stock heuristic's choice \p Default.
  bool question(int Default, llvm::function_ref<void()> Ask);

  /// The priority of a live range whose stock priority is \p Stock.
  unsigned priority(unsigned Stock, llvm::function_ref<PriorityInputs()> Inputs);

  /// To be called when the cost of \p MF, allocated and with its frame, is to be
  /// taken. Ends the process if it is a trial.
  void allocated(const llvm::MachineFunction &MF,
                 const llvm::MachineBlockFrequencyInfo &Frequencies);

private:
  /// The function that is being allocated, and what was decided in it.
  struct Function {
    uint64_t ID = 0;
    bool IsStock = true;     ///< No policy decides here.
    bool Pending = false;    ///< The alternatives have not been tried yet.
    SearchPoint By;          ///< Who answers.
    bool Wrap = false;       ///< A search's choice: any number means a candidate.
    AllocationChoices Taken; ///< All answers that left the stock heuristics.
    Allocation Done;
    unsigned Evictions = 0; ///< That left the stock heuristic.
    unsigned MaxEvictions = 0;
    unsigned Trials = 0;
    unsigned LabelEvery = 0; ///< Of the questions; 0: none.
    /// Whether so many evictions left the stock heuristic that it has to end.
    bool mustEnd() const { return !IsStock && Evictions >= MaxEvictions; }
    std::optional<FunctionCost> StockCost;
    /// Costs of the alternatives over stock's; infinite where not tried.
    llvm::SmallVector<double, 0> Tried;
  };

  AllocationSession(llvm::Module &M, RegallocSettings S) : M(M), S(std::move(S)) {}
  llvm::Error load();
  llvm::Error loadPolicies();
  llvm::Error openLogs();
  bool mayTry(const llvm::MachineFunction &MF);
  bool tryNow(const SearchPoint &Point, Allocation &Result);
  void keepCheapest();
  void search();
  void planLabels();
  unsigned evict(const EvictionQuestion &Q);
  EvictionAnswer answerOf(size_t Which, const EvictionQuestion &Q);
  bool differ(const EvictionQuestion &Q);
  bool differ(const PriorityInputs &X, unsigned Stock, unsigned Number);
  void label(const EvictionQuestion &Q, EvictionRecord &Record);
  Draw draw(unsigned Question) const;

  llvm::Module &M;
  RegallocSettings S;
  bool Works = false;
  bool WarnedOfThreads = false;
  std::unique_ptr<llvm::RegAllocEvictionAdvisorProvider> Stock;
  TensorRunner *Tensors = nullptr; ///< Owned by Stock.
  std::optional<EvictionTensors> Offered;
  std::vector<std::unique_ptr<EvictionPolicy>> Evictors;
  std::vector<std::unique_ptr<PriorityPolicy>> Orderers;
  std::vector<Alternative> Alternatives; ///< The first is the stock compiler.
  AllocationOverrides Overrides;
  std::unique_ptr<AllocationLog> Log;
  std::unique_ptr<EvictionLog> EvictionRecords;
  std::unique_ptr<PriorityLog> PriorityRecords;
  Function Run;
  int DefaultCandidate = 0; ///< Of the question that is being asked; -1: none.
  bool Offers = false;      ///< LLVM's advisor describes candidates for it.
  bool Left = false;        ///< Its answer left the default.
};

} // namespace nestor

#endif
