//===- PriorityPolicy.cpp - A policy that orders live ranges --------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "PriorityPolicy.h"
#include "llvm/ADT/STLExtras.h"
#include <algorithm>
#include <cmath>

using namespace llvm;

namespace nestor {

constexpr unsigned RankBits = 24;
constexpr unsigned MaxRank = (1u << RankBits) - 1;

static constexpr StringLiteral Names[] = {"li_size", "stage",     "weight",  "rank",
                                          "is_global", "has_hint", "is_local"};

ArrayRef<StringLiteral> priorityFeatures() { return Names; }

/// 2 to the power of \p X, linear between whole numbers: the same bits everywhere.
static double powerOfTwo(double X) {
  const double Whole = std::floor(X);
  return std::ldexp(1 + (X - Whole), int(Whole));
}

unsigned scaledPriority(unsigned Stock, double Answer) {
  if (Answer == 0)
    return Stock;
  const double Rank = Stock & MaxRank;
  const double Scaled = Rank * powerOfTwo(std::clamp(Answer, -64.0, 64.0));
  return (Stock & ~MaxRank) |
         unsigned(std::clamp(std::floor(Scaled + 0.5), 0.0, double(MaxRank)));
}

Expected<std::vector<PriorityPolicy>> PriorityPolicy::load(StringRef Path) {
  PriorityPolicy P;
  Expected<LoadedPolicy> Loaded =
      loadPolicyFor({"regalloc-priority"}, Rule::Value, "priority", Path);
  if (!Loaded)
    return Loaded.takeError();
  std::string Missing;
  for (const std::string &Name : Loaded->Features) {
    const auto *It = llvm::find(Names, Name);
    if (It == std::end(Names))
      Missing += (Missing.empty() ? "" : ", ") + Name;
    P.Inputs.push_back(size_t(It - std::begin(Names)));
  }
  if (!Missing.empty())
    return createStringError("it needs features that this compiler does not offer: " +
                             Missing);
  P.Row.resize(P.Inputs.size());
  P.File = std::make_shared<const LoadedPolicy>(std::move(*Loaded));
  std::vector<PriorityPolicy> Members;
  for (Policy *Evaluator : P.File->evaluators()) {
    P.Evaluator = Evaluator;
    Members.push_back(P);
  }
  return std::move(Members);
}

PriorityAnswer PriorityPolicy::answer(const PriorityInputs &X, const Draw &How) {
  for (size_t I = 0; I < Inputs.size(); ++I) {
    Row[I] = X[Inputs[I]];
    if (!File->inRange(I, Row[I]))
      return {};
  }
  const double Logit = Evaluator->logit(Row);
  const double Action =
      How.Uniform ? sampleAction(Rule::Value, Logit, *How.Uniform, How.Temperature)
                  : greedyAction(Rule::Value, Logit);
  return {Action, logProbability(Rule::Value, Logit, Action,
                                 How.Uniform ? How.Temperature : 1)};
}

} // namespace nestor
