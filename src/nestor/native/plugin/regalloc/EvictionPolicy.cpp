//===- EvictionPolicy.cpp - A policy that picks what to evict -------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "EvictionPolicy.h"

using namespace llvm;

namespace nestor {

constexpr StringLiteral Problem = "regalloc-eviction";

Expected<EvictionPolicy> EvictionPolicy::load(StringRef Path,
                                              const EvictionTensors &Offered) {
  EvictionPolicy P;
  Expected<LoadedPolicy> Loaded = loadPolicy(Path);
  if (!Loaded)
    return Loaded.takeError();
  if (Loaded->Problem != Problem)
    return createStringError("it is for " + Loaded->Problem + ", not for " + Problem);
  if (Loaded->ActionRule != Rule::Pick)
    return createStringError("its rule is " + nameOf(Loaded->ActionRule) +
                             ", and eviction needs " + nameOf(Rule::Pick));
  auto Inputs = Offered.bind(Loaded->Features);
  if (!Inputs)
    return Inputs.takeError();
  P.Policy = std::move(*Loaded);
  P.Inputs = std::move(*Inputs);
  P.Row.resize(P.Inputs.size());
  return std::move(P);
}

EvictionAnswer EvictionPolicy::answer(const EvictionQuestion &Q, const Draw &How) {
  Logits.clear();
  for (unsigned Candidate : Q.allowed()) {
    for (size_t I = 0; I < Inputs.size(); ++I) {
      Row[I] = Q.read(Inputs[I], Candidate);
      if (!Policy.inRange(I, Row[I]))
        return {unsigned(Q.defaultCandidate()), 0, 0};
    }
    Logits.push_back(Policy.Evaluator->logit(Row));
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
