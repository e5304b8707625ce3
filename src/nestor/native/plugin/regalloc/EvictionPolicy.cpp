//===- EvictionPolicy.cpp - A policy that picks what to evict -------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "EvictionPolicy.h"

using namespace llvm;

namespace nestor {

Expected<std::vector<EvictionPolicy>>
EvictionPolicy::load(StringRef Path, const EvictionTensors &Offered) {
  Expected<LoadedPolicy> Loaded =
      loadPolicyFor({"regalloc-eviction"}, Rule::Pick, "eviction", Path);
  if (!Loaded)
    return Loaded.takeError();
  auto Inputs = Offered.bind(Loaded->Features);
  if (!Inputs)
    return Inputs.takeError();
  EvictionPolicy P;
  P.Inputs = std::move(*Inputs);
  P.Row.resize(P.Inputs.size());
  P.File = std::make_shared<const LoadedPolicy>(std::move(*Loaded));
  std::vector<EvictionPolicy> Members;
  for (Policy *Evaluator : P.File->evaluators()) {
    P.Evaluator = Evaluator;
    Members.push_back(P);
  }
  return std::move(Members);
}

EvictionAnswer EvictionPolicy::answer(const EvictionQuestion &Q, const Draw &How) {
  Logits.clear();
  for (unsigned Candidate : Q.allowed()) {
    for (size_t I = 0; I < Inputs.size(); ++I) {
      Row[I] = Q.read(Inputs[I], Candidate);
      if (!File->inRange(I, Row[I]))
        return {unsigned(Q.defaultCandidate()), 0, 0};
    }
    Logits.push_back(Evaluator->logit(Row));
  }
  const double Action =
      How.Uniform ? sampleAction(Rule::Pick, Logits, *How.Uniform, How.Temperature)
                  : greedyAction(Rule::Pick, Logits);
  const size_t Chosen = size_t(Action);
  return {Q.allowed()[Chosen], Logits[Chosen],
          logProbability(Rule::Pick, Logits, Action,
                         How.Uniform ? How.Temperature : 1)};
}

} // namespace nestor
