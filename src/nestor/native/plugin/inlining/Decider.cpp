//===- Decider.cpp - Policy, default, sample or override: the answer ------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Decider.h"
#include "SiteFeatures.h"
#include "plugin/core/StableIDs.h"
#include "policy/Draws.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/raw_ostream.h"
#include <cmath>
#include <limits>
#include <map>
#include <tuple>

using namespace llvm;

namespace nestor {

constexpr int DefaultAsFeature = -1;

/// Where each of the policy's features comes from, or which ones the compiler
/// does not have. A policy may read fewer features than there are.
static Expected<std::vector<int>>
bindFeatures(ArrayRef<std::string> Wanted, ArrayRef<TensorSpec> Offered) {
  std::vector<int> Inputs;
  std::string Missing;
  for (const std::string &Name : Wanted) {
    const auto *It = llvm::find_if(
        Offered, [&](const TensorSpec &T) { return T.name() == Name; });
    if (Name == "inlining_default")
      Inputs.push_back(DefaultAsFeature);
    else if (It != Offered.end() && It->getElementCount() == 1 &&
             It->isElementType<int64_t>())
      Inputs.push_back(It - Offered.begin());
    else
      Missing += (Missing.empty() ? "" : ", ") + Name;
  }
  if (!Missing.empty())
    return createStringError("it needs features that this compiler does not "
                             "offer: " +
                             Missing);
  return Inputs;
}

static Error because(StringRef What, StringRef Path, Error E) {
  return createStringError(What + " '" + Path +
                           "': " + toString(std::move(E)));
}

namespace {
struct BoundPolicy {
  LoadedPolicy Policy;
  std::vector<int> Inputs; ///< Per feature: its tensor, -1 the default.
};
} // namespace

static Expected<BoundPolicy> loadBound(StringRef Path, ArrayRef<TensorSpec> Offered) {
  std::vector<StringRef> Problems;
  for (const InliningProblem &P : inliningProblems())
    Problems.push_back(P.Name);
  Expected<LoadedPolicy> Policy =
      loadPolicyFor(Problems, Rule::Threshold, "inlining", Path.str());
  if (!Policy)
    return because("cannot use the policy", Path, Policy.takeError());
  auto Inputs = bindFeatures(Policy->Features, Offered);
  if (!Inputs)
    return because("cannot use the policy", Path, Inputs.takeError());
  return BoundPolicy{std::move(*Policy), std::move(*Inputs)};
}

static std::vector<size_t> tensorsOf(ArrayRef<int> Inputs) {
  std::vector<size_t> Tensors;
  for (int Input : Inputs)
    if (Input != DefaultAsFeature)
      Tensors.push_back(Input);
  return Tensors;
}

Expected<std::vector<size_t>> Decider::readBy(StringRef Path,
                                              ArrayRef<TensorSpec> Offered) {
  auto Bound = loadBound(Path, Offered);
  if (!Bound)
    return Bound.takeError();
  return tensorsOf(Bound->Inputs);
}

Expected<Decider> Decider::create(Module &M, const InliningSettings &S,
                                  ArrayRef<TensorSpec> Offered) {
  Decider D;
  if (!(S.Temperature > 0) || !std::isfinite(S.Temperature))
    return createStringError("-nestor-temperature must be positive");
  D.Seed = S.Seed;
  D.SeedCallees = S.SeedCallees;
  D.Temperature = S.Temperature;
  if (!S.Policy.empty() && S.Policy != "default") {
    auto Bound = loadBound(S.Policy, Offered);
    if (!Bound)
      return Bound.takeError();
    D.Problem = llvm::find_if(inliningProblems(), [&](const InliningProblem &P) {
      return P.Name == Bound->Policy.Problem;
    });
    D.Policy = std::move(Bound->Policy);
    D.Inputs = std::move(Bound->Inputs);
    D.X.resize(D.Inputs.size());
    D.Tensors = tensorsOf(D.Inputs);
    D.orderInputs();
    D.Settles = S.Log.empty() && !S.Seed;
  }
  if (D.Policy && D.Policy->Meaning == Answers::Deviation)
    D.Copyable = M.getInstructionCount();
  if (!S.Overrides.empty()) {
    Expected<Overrides> Fixed = Overrides::load(S.Overrides, moduleID(M));
    if (!Fixed)
      return because("cannot use the overrides", S.Overrides,
                     Fixed.takeError());
    D.Fixed = std::move(*Fixed);
    if (D.Fixed.isStock(moduleID(M)))
      D.dropPolicy();
    D.WithoutSummary = D.Fixed.isWithoutSummary(moduleID(M));
  }
  if (D.Policy && llvm::none_of(M, [&](const Function &F) { return D.actsIn(F); })) {
    D.dropPolicy();
    D.WrongLevel = true;
  }
  D.NeedDefault = !D.Policy || !S.Log.empty() ||
                  D.Policy->Meaning == Answers::Deviation ||
                  llvm::is_contained(D.Inputs, DefaultAsFeature);
  if ((!S.Log.empty() && S.LogFor.empty()) || D.Fixed.hasSites() || (S.Seed && D.Policy))
    D.Keys.emplace(M);
  return D;
}

/// Leaves the whole module to the default.
void Decider::dropPolicy() {
  Policy.reset();
  Tensors.clear();
}

Decision Decider::decide(CallBase &CB, function_ref<bool()> Default,
                         function_ref<double(size_t)> Read) {
  ++Asked;
  Decision D;
  const bool Acts = actsIn(*CB.getCaller());
  if (NeedDefault || !Acts)
    D.Default = Default();
  if (Keys) {
    D.Site = Keys->keyOf(CB);
    D.CopyOf = Keys->copiedFrom(CB, D.Site);
  }
  D.Answer = D.Default;
  if (Acts && isSpent())
    ++AskedWhenSpent;
  else if (Acts && readInputs(D, Read))
    askPolicy(CB, D);
  else if (Acts && Policy->Meaning == Answers::Decision)
    D.Answer = 0;
  // A name is hashed only if overrides of callees look it up.
  const uint64_t Callee =
      Fixed.hasCallees() ? functionID(*CB.getCalledFunction()) : 0;
  if (std::optional<bool> Override = Fixed.lookup(D.Site, D.CopyOf, Callee)) {
    D.Answer = *Override;
    D.Overridden = 1;
  }
  return D;
}

/// Completes \p D by the policy's answer to X.
void Decider::askPolicy(CallBase &CB, Decision &D) {
  D.Logit = Policy->Evaluator->logit(X);
  const Rule R = Policy->ActionRule;
  const Function &Callee = *CB.getCalledFunction();
  D.Action = Seed ? sampleAction(
                        R, D.Logit,
                        uniform(*Seed, SeedCallees ? functionID(Callee) : D.Site),
                        Temperature)
                  : greedyAction(R, D.Logit);
  if (!Settles)
    D.LogProbability =
        logProbability(R, D.Logit, D.Action, Seed ? Temperature : 1);
  D.Answer =
      Policy->Meaning == Answers::Decision ? D.Action : D.Action != D.Default;
}

void Decider::onInlining(const Function &Callee, const Decision &D) {
  bool Moves = Callee.hasOneUse() && Callee.isDiscardableIfUnused();
  if (D.Answer && !D.Default && !Moves)
    Copied += Callee.getInstructionCount();
}

// A plain line on standard error: clang would not show a remark or a note of a
// plugin, and would make an error of a warning under -Werror.
void Decider::finish(Module &M) const {
  if (Keys)
    Keys->strip(M);
  if (WrongLevel && Asked)
    errs() << ("nestor: remark: " + M.getName() + ": no function is compiled " +
               Problem->Code + ", so the policy decides nothing here (of several -O "
               "options the last one counts)\n")
                  .str();
}

/// Makes Steps.
void Decider::orderInputs() {
  std::map<Price, Step> ByPrice;
  for (size_t I = 0; I < Inputs.size(); ++I)
    ByPrice[Inputs[I] == DefaultAsFeature ? Price::Glance
                                          : SiteFeatures::priceOf(Inputs[I])]
        .Features.push_back(I);
  for (auto &[_, Features] : ByPrice)
    Steps.push_back(std::move(Features));
}

/// Fills X; false if the policy's action is known to be 0 before all is read: a value
/// is out of the policy's range, or what is known keeps the logit from being positive.
/// What is not read yet is in the range, or that would be the reason.
bool Decider::readInputs(const Decision &D, function_ref<double(size_t)> Read) {
  constexpr double Most = std::numeric_limits<double>::max();
  Lowest.assign(X.size(), -Most);
  Highest.assign(X.size(), Most);
  for (size_t I = 0; I < Policy->Range.size(); ++I)
    std::tie(Lowest[I], Highest[I]) = Policy->Range[I];
  for (Step &S : Steps) {
    for (size_t I : S.Features) {
      X[I] = Inputs[I] == DefaultAsFeature ? double(D.Default) : Read(Inputs[I]);
      if (!Policy->inRange(I, X[I]))
        return false;
      Lowest[I] = Highest[I] = X[I];
    }
    if (!Settles || &S == &Steps.back() || !S.pays())
      continue;
    ++S.Looks;
    if (Policy->Evaluator->neverPositive(Lowest, Highest)) {
      ++S.Settled;
      return false;
    }
  }
  return true;
}

} // namespace nestor
