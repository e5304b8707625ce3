//===- RuleCases.cpp - Answers cases of rules for test_rules.py -----------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Reads cases from the standard input, all numbers of 8 bytes: the rule (0
// threshold, 1 pick, 2 value), the number of rows, a seed, a counter, a
// temperature, an action, and the rows' logits. Writes for each case five
// doubles: the uniform number, the greedy and the sampled action, the
// log-probability of the case's action, and the entropy.
//
//===----------------------------------------------------------------------===//

#include "policy/Draws.h"
#include "policy/Rule.h"
#include <cstdint>
#include <cstdio>
#include <vector>

using namespace nestor;

struct Case {
  int64_t Rule, Rows;
  uint64_t Seed, Counter;
  double Temperature, Action;
};

int main() {
  Case C;
  std::vector<double> Logits;
  while (std::fread(&C, sizeof(C), 1, stdin) == 1) {
    Logits.resize(C.Rows);
    if (std::fread(Logits.data(), sizeof(double), C.Rows, stdin) !=
        size_t(C.Rows))
      return 1;
    const Rule R = static_cast<Rule>(C.Rule);
    const double Uniform = uniform(C.Seed, C.Counter);
    const double Answers[] = {
        Uniform, greedyAction(R, Logits),
        sampleAction(R, Logits, Uniform, C.Temperature),
        logProbability(R, Logits, C.Action, C.Temperature),
        entropy(R, Logits, C.Temperature)};
    std::fwrite(Answers, sizeof(Answers), 1, stdout);
  }
  return 0;
}
