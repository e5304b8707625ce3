//===- AllocationSession.cpp - Who decides in which function --------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "AllocationSession.h"
#include "TensorRunner.h"
#include "plugin/core/StableIDs.h"
#include "policy/Draws.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/CodeGen/MachineFunction.h"
#include "llvm/CodeGen/MachineRegisterInfo.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Module.h"
#include <cmath>
#include <limits>

using namespace llvm;

namespace nestor {

/// Beyond so many evictions that are not its own, the stock heuristic, which is
/// proved to end, decides: policies that evict in circles cannot hang the compiler.
static unsigned maxEvictions(const MachineFunction &MF) {
  return 1000 + 4 * MF.getRegInfo().getNumVirtRegs();
}

static thread_local std::weak_ptr<AllocationSession> OnThisThread;
static thread_local AllocationSession *InUse = nullptr;

std::shared_ptr<AllocationSession> AllocationSession::of(Module &M) {
  std::shared_ptr<AllocationSession> Session = OnThisThread.lock();
  if (Session && &Session->M == &M)
    return Session;
  Session.reset(new AllocationSession(M, currentRegallocSettings()));
  if (Error E = Session->load())
    M.getContext().emitError("nestor: " + toString(std::move(E)));
  else
    Session->Works = true;
  OnThisThread = Session;
  InUse = Session.get();
  return Session;
}

AllocationSession *AllocationSession::current() { return InUse; }

AllocationSession::~AllocationSession() {
  if (InUse == this)
    InUse = nullptr;
}

void AllocationSession::finish() {
  if (isTrial()) // No pass took the cost of its function.
    abandonTrial();
  Error E = Error::success();
  if (Log)
    E = joinErrors(std::move(E), Log->finish());
  if (EvictionRecords)
    E = joinErrors(std::move(E), EvictionRecords->finish(M));
  if (PriorityRecords)
    E = joinErrors(std::move(E), PriorityRecords->finish(M));
  Log.reset();
  EvictionRecords.reset();
  PriorityRecords.reset();
  if (E)
    M.getContext().emitError("nestor: cannot write the log: " +
                             toString(std::move(E)));
}

Draw AllocationSession::draw(unsigned Question) const {
  if (!S.Seed)
    return {};
  const uint64_t Counter =
      S.SeedFunctions ? Run.ID : combineIDs(Run.ID, Question);
  return {uniform(*S.Seed, Counter), S.Temperature};
}

void AllocationSession::begin(const MachineFunction &MF) {
  if (isTrial()) // As in finish().
    abandonTrial();
  Run = Function();
  if (!Works)
    return;
  Run.ID = functionID(MF.getFunction());
  Run.MaxEvictions = maxEvictions(MF);
  if (EvictionRecords)
    EvictionRecords->name(Run.ID, MF.getName());
  if (PriorityRecords)
    PriorityRecords->name(Run.ID, MF.getName());
  Run.IsStock = Overrides.isStock(moduleID(M), Run.ID);
  if (Run.IsStock)
    return;
  if (const AllocationChoices *Choices = Overrides.find(Run.ID))
    Run.By.Fixed = *Choices;
  const bool MayTry = S.tries() && mayTry(MF);
  if (!S.Best && !S.Search) {
    Run.By.Alternative = Alternatives.size() - 1; // Also where labels are wanted.
  } else if (MayTry && S.Search && Run.By.Fixed.empty()) {
    search();
  } else if (MayTry && S.Best) {
    Run.Pending = true; // Until an alternative leaves the stock heuristics.
  }
  if (MayTry && S.Labels && EvictionRecords && !isTrial())
    planLabels();
}

bool AllocationSession::wantsQuestion() const {
  if (!Works)
    return false;
  if (!isTrial() && (EvictionRecords || Run.LabelEvery))
    return true;
  if (Run.By.Fixed.Evictions.count(Run.Done.Questions))
    return true;
  if (Run.IsStock || Run.mustEnd())
    return false;
  return Run.Pending || Alternatives[Run.By.alternativeAt(Run.Done.Questions)].Evict;
}

bool AllocationSession::question(int Default, function_ref<void()> Ask) {
  DefaultCandidate = Default;
  Left = Offers = false;
  Tensors->Answer = [this](const MLModelRunner &Values) {
    return evict(EvictionQuestion(*Offered, Values, DefaultCandidate));
  };
  Ask();
  Run.Done.Kept += !Offers && Default != int(OwnCandidate);
  ++Run.Done.Questions;
  Run.Done.Deviations += Left;
  Run.Evictions += Left;
  return Left;
}

EvictionAnswer AllocationSession::answerOf(size_t Which, const EvictionQuestion &Q) {
  EvictionPolicy *Policy = Alternatives[Which].Evict;
  if (Run.IsStock || !Policy || Run.mustEnd())
    return {unsigned(Q.defaultCandidate()), 0, 0};
  return Policy->answer(Q, draw(Run.Done.Questions));
}

unsigned AllocationSession::evict(const EvictionQuestion &Q) {
  Offers = true;
  if (!Q.allows(Q.defaultCandidate())) { // The stock heuristic's choice stands.
    ++Run.Done.Kept;
    return Q.allowed().front();
  }
  Run.Done.Kept += Run.mustEnd();
  EvictionRecord Record;
  Record.Costs.fill(std::numeric_limits<double>::quiet_NaN());
  if (Run.LabelEvery && !isTrial() && Run.Done.Questions % Run.LabelEvery == 0)
    label(Q, Record);
  if (Run.Pending && differ(Q))
    keepCheapest();
  const EvictionAnswer Answer = answerOf(Run.By.alternativeAt(Run.Done.Questions), Q);
  unsigned Candidate = Answer.Candidate;
  auto Fixed = Run.By.Fixed.Evictions.find(Run.Done.Questions);
  if (Fixed != Run.By.Fixed.Evictions.end()) {
    if (Q.allows(int(Fixed->second)))
      Candidate = Fixed->second;
    else
      Candidate = Run.Wrap ? Q.allowed()[Fixed->second % Q.allowed().size()]
                           : unsigned(Q.defaultCandidate());
    Record.Overridden = true;
  }
  Left = int(Candidate) != Q.defaultCandidate();
  if (isTrial())
    return Candidate;
  if (Left)
    Run.Taken.Evictions[Run.Done.Questions] = Candidate;
  if (EvictionRecords) {
    Record.Function = Run.ID;
    Record.Question = Run.Done.Questions;
    Record.Logit = Answer.Logit;
    Record.LogProbability = Answer.LogProbability;
    Record.Default = unsigned(Q.defaultCandidate());
    Record.Answer = Candidate;
    EvictionRecords->write(*Tensors, Record);
  }
  return Candidate;
}

unsigned AllocationSession::priority(unsigned Stock,
                                     function_ref<PriorityInputs()> Inputs) {
  const unsigned Number = Run.Done.Priorities++;
  if (!Works)
    return Stock;
  PriorityPolicy *Policy =
      Run.IsStock ? nullptr : Alternatives[Run.By.Alternative].Order;
  const bool Logged = PriorityRecords && !isTrial();
  PriorityRecord Record;
  PriorityAnswer Answer;
  const bool Compared = Run.Pending && !Orderers.empty();
  if (Policy || Logged || Compared)
    Record.Inputs = Inputs();
  if (Compared && differ(Record.Inputs, Stock, Number)) {
    keepCheapest();
    Policy = Alternatives[Run.By.Alternative].Order;
  }
  if (Policy)
    Answer = Policy->answer(Record.Inputs, draw(Number));
  auto Fixed = Run.By.Fixed.Priorities.find(Number);
  if (Fixed != Run.By.Fixed.Priorities.end()) {
    Answer.Value = Fixed->second;
    Record.Overridden = true;
  }
  const unsigned Priority = scaledPriority(Stock, Answer.Value);
  Run.Done.Deviations += Priority != Stock;
  if (isTrial())
    return Priority;
  if (Priority != Stock)
    Run.Taken.Priorities[Number] = Answer.Value;
  if (Logged) {
    Record.Function = Run.ID;
    Record.Question = Number;
    Record.Logit = Record.Answer = Answer.Value;
    Record.LogProbability = Answer.LogProbability;
    Record.Default = Stock;
    Record.Priority = Priority;
    PriorityRecords->write(Record);
  }
  return Priority;
}

void AllocationSession::allocated(const MachineFunction &MF,
                                  const MachineBlockFrequencyInfo &Frequencies) {
  if (!Works || !(isTrial() || Log))
    return;
  const llvm::Function &F = MF.getFunction();
  if (const uint64_t ID = functionID(F); ID != Run.ID) {
    Run = Function(); // It has no virtual registers, so nothing was allocated.
    Run.ID = ID;
  }
  Run.Done.Cost = costOf(MF, Frequencies);
  if (isTrial()) {
    if (MF.getProperties().hasFailedRegAlloc()) // Reported as an error, no more.
      abandonTrial();
    finishTrial(Run.Done);
  }
  Log->write(F, {Run.ID, Run.Done, Run.By.Alternative, Run.Trials, Run.StockCost,
                Run.Tried, Run.Taken});
}

} // namespace nestor
