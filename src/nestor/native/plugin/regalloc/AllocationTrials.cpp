//===- AllocationTrials.cpp - Compares allocations of a function ----------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "AllocationSession.h"
#include "plugin/core/StableIDs.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/CodeGen/MachineFunction.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/raw_ostream.h"
#include <limits>

using namespace llvm;

namespace nestor {

/// Larger functions are not tried: a trial of one costs seconds.
constexpr unsigned MaxTriedInstructions = 100000;

/// Whether \p MF can be allocated on trial. A plain line on standard error says that
/// nothing can, since clang would not show a remark of a plugin.
bool AllocationSession::mayTry(const MachineFunction &MF) {
  if (canTry())
    return MF.getInstructionCount() <= MaxTriedInstructions;
  if (!WarnedOfThreads)
    errs() << ("nestor: remark: " + M.getName() +
               ": nothing is tried in a compiler of several threads, so the stock "
               "heuristics allocate the registers\n")
                  .str();
  WarnedOfThreads = true;
  return false;
}

bool AllocationSession::tryNow(const SearchPoint &Point, Allocation &Result) {
  if (forkTrial(Result)) {
    Run.By = Point;
    Run.Pending = false;
    Run.LabelEvery = 0;
    return true;
  }
  ++Run.Trials;
  return false;
}

/// Tries stock and each policy alone, then the pairs that hold the cheapest of these:
/// all pairs would be some five times as many trials.
void AllocationSession::keepCheapest() {
  Run.Pending = false;
  double Least = 1;
  size_t Cheapest = 0;
  for (const bool Pairs : {false, true}) {
    const Alternative Best = Alternatives[Cheapest];
    for (size_t I = 0; I < Alternatives.size(); ++I) {
      const Alternative &A = Alternatives[I];
      const bool IsPair = A.Evict && A.Order;
      if (IsPair != Pairs || (IsPair && A.Evict != Best.Evict && A.Order != Best.Order))
        continue;
      SearchPoint Point = Run.By;
      Point.Alternative = I;
      Allocation Result;
      if (tryNow(Point, Result))
        return; // In the child.
      if (I == 0) {
        if (!Result.succeeded())
          return; // Nothing can be called better: stock, the usual choice, stands.
        Run.StockCost = Result.Cost;
        Run.Tried.assign(Alternatives.size(), std::numeric_limits<double>::infinity());
        Least = Result.Cost.betterBelow();
      }
      Run.Tried[I] = Result.Cost.ratioTo(*Run.StockCost);
      if (Run.Tried[I] < Least) {
        Least = Run.Tried[I];
        Cheapest = I;
      }
    }
  }
  Run.By.Alternative = Cheapest;
}

void AllocationSession::search() {
  SearchSettings Settings;
  Settings.Trials = S.Search;
  Settings.Alternatives = Alternatives.size();
  Settings.Evictions = S.SearchEviction;
  Settings.Priorities = S.SearchPriority;
  Settings.Seed = combineIDs(Run.ID, S.Seed.value_or(0));
  SearchResult Result;
  Run.Wrap = true;
  if (searchAllocations(
          Settings,
          [&](const SearchPoint &P, Allocation &R) { return tryNow(P, R); },
          Result))
    return; // In a child.
  if (!Result.AtStock.succeeded())
    return; // As in keepCheapest().
  Run.StockCost = Result.AtStock.Cost;
  if (Result.AtBest.Cost.ratioTo(Result.AtStock.Cost) <
      Result.AtStock.Cost.betterBelow())
    Run.By = std::move(Result.Best);
}

void AllocationSession::planLabels() {
  Allocation Result;
  if (tryNow(Run.By, Result))
    return;
  constexpr unsigned UsualCandidates = 8;
  if (!Result.succeeded())
    return;
  Run.StockCost = Result.Cost;
  if (Result.Questions)
    Run.LabelEvery = 1 + Result.Questions * UsualCandidates / S.Labels;
}

/// Whether an alternative leaves the stock heuristic's choice.
bool AllocationSession::differ(const EvictionQuestion &Q) {
  for (size_t I = 1; I < Alternatives.size(); ++I)
    if (int(answerOf(I, Q).Candidate) != Q.defaultCandidate())
      return true;
  return false;
}

/// Whether a policy leaves the stock priority.
bool AllocationSession::differ(const PriorityInputs &X, unsigned Stock,
                               unsigned Number) {
  return llvm::any_of(Orderers, [&](const std::unique_ptr<PriorityPolicy> &P) {
    return scaledPriority(Stock, P->answer(X, draw(Number)).Value) != Stock;
  });
}

/// Tries every candidate, going on as the function's alternative does.
void AllocationSession::label(const EvictionQuestion &Q, EvictionRecord &Record) {
  for (unsigned Candidate : Q.allowed()) {
    SearchPoint Point = Run.By;
    Point.Fixed.Evictions[Run.Done.Questions] = Candidate;
    Allocation Result;
    if (tryNow(Point, Result))
      return; // In the child.
    Record.Costs[Candidate] = Result.Cost.total();
  }
}

} // namespace nestor
