//===- Decider.cpp - Policy, default, sample or override: the answer ------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Decider.h"
#include "plugin/core/StableIDs.h"
#include "policy/Draws.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/raw_ostream.h"
#include <cmath>

using namespace llvm;

namespace nestor {

Expected<Decider> Decider::create(Module &M, const InliningSettings &S,
                                  ArrayRef<TensorSpec> Offered) {
  Decider D;
  if (!(S.Temperature > 0) || !std::isfinite(S.Temperature))
    return createStringError("-nestor-temperature must be positive");
  D.Seed = S.Seed;
  D.SeedCallees = S.SeedCallees;
  D.Temperature = S.Temperature;
  D.Logs = !S.Log.empty();
  D.Settles = !D.Logs && !S.Seed;
  auto Loaded = loadPolicies(M, S, Offered);
  if (!Loaded)
    return Loaded.takeError();
  D.Policies = std::move(Loaded->Acting);
  D.Elsewhere = std::move(Loaded->Elsewhere);
  if (!S.Overrides.empty()) {
    Expected<Overrides> Fixed = Overrides::load(S.Overrides, moduleID(M));
    if (!Fixed)
      return createStringError("cannot use the overrides '" + S.Overrides +
                               "': " + toString(Fixed.takeError()));
    D.Fixed = std::move(*Fixed);
    if (D.Fixed.isStock(moduleID(M)))
      D.Policies.clear();
    D.WithoutSummary = D.Fixed.isWithoutSummary(moduleID(M));
  }
  for (BoundPolicy &Policy : D.Policies) {
    Policy.limitCopies(M);
    llvm::append_range(D.Tensors, Policy.tensors());
  }
  if ((D.Logs && S.LogFor.empty()) || D.Fixed.hasSites() || (S.Seed && D.hasPolicy()))
    D.Keys.emplace(M);
  return D;
}

const BoundPolicy *Decider::policyFor(const Function &Caller) const {
  for (const BoundPolicy &Policy : Policies)
    if (Policy.actsIn(Caller))
      return &Policy;
  return nullptr;
}

Decision Decider::decide(CallBase &CB, function_ref<bool()> Default,
                         function_ref<double(size_t)> Read,
                         function_ref<bool(Price)> CanTry) {
  ++Asked;
  Decision D;
  BoundPolicy *Policy = policyFor(*CB.getCaller());
  if (!Policy || Logs || Policy->readsDefault())
    D.Default = Default();
  if (Keys) {
    D.Site = Keys->keyOf(CB);
    D.CopyOf = Keys->copiedFrom(CB, D.Site);
  }
  // A name is hashed only if overrides of callees look it up.
  const uint64_t Callee =
      Fixed.hasCallees() ? functionID(*CB.getCalledFunction()) : 0;
  const std::optional<bool> Override = Fixed.lookup(D.Site, D.CopyOf, Callee);
  D.Answer = D.Default;
  if (Policy && Policy->isSpent())
    ++AskedWhenSpent;
  else if (Policy &&
           Policy->read(D, Read, Settles, [&](Price P) { return !Override && CanTry(P); }))
    askPolicy(*Policy, CB, D);
  else if (Policy)
    D.Answer = Policy->answer(0, D.Default);
  if (Override) {
    D.Answer = *Override;
    D.Overridden = 1;
  }
  return D;
}

/// Completes \p D by the answer of \p Policy, which has read the question.
void Decider::askPolicy(BoundPolicy &Policy, CallBase &CB, Decision &D) {
  D.Logit = Policy.logit();
  const Rule R = Policy.rule();
  const Function &Callee = *CB.getCalledFunction();
  D.Action = Seed ? sampleAction(
                        R, D.Logit,
                        uniform(*Seed, SeedCallees ? functionID(Callee) : D.Site),
                        Temperature)
                  : greedyAction(R, D.Logit);
  if (!Settles)
    D.LogProbability =
        logProbability(R, D.Logit, D.Action, Seed ? Temperature : 1);
  D.Answer = Policy.answer(D.Action, D.Default);
}

void Decider::onInlining(const CallBase &CB, const Decision &D) {
  const Function &Callee = *CB.getCalledFunction();
  const bool Moves = Callee.hasOneUse() && Callee.isDiscardableIfUnused();
  if (!D.Answer || D.Default || Moves)
    return;
  if (BoundPolicy *Policy = policyFor(*CB.getCaller()))
    Policy->onCopied(Callee.getInstructionCount());
}

// A plain line on standard error: clang would not show a remark or a note of a
// plugin, and would make an error of a warning under -Werror.
void Decider::finish(Module &M) const {
  if (Keys)
    Keys->strip(M);
  if (!Elsewhere.empty() && Asked)
    errs() << ("nestor: remark: " + M.getName() + ": no function is compiled " +
               Elsewhere + ", so the policy decides nothing here (of several -O "
               "options the last one counts)\n")
                  .str();
}

} // namespace nestor
