//===- RuleTest.cpp - Rules and draws on values worked out by hand --------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// test_rules.py compares them with Python's on random and hostile rows.
//
//===----------------------------------------------------------------------===//

#include "policy/Rule.h"
#include "policy/Draws.h"
#include <cmath>
#include <doctest/doctest.h>
#include <limits>
#include <set>
#include <vector>

using namespace llvm;
using namespace nestor;

constexpr double Inf = std::numeric_limits<double>::infinity();
static const double NaN = std::nan("");

TEST_CASE("rules have names") {
  for (Rule R : {Rule::Threshold, Rule::Pick, Rule::Value})
    CHECK(ruleNamed(nameOf(R)) == R);
  CHECK(!ruleNamed("choose"));
  CHECK(!ruleNamed(""));
}

TEST_CASE("the greatest of several rows is picked, the first of equals") {
  auto Pick = [](std::vector<double> Logits) {
    return greedyAction(Rule::Pick, Logits);
  };
  CHECK(Pick({-3}) == 0);
  CHECK(Pick({1, 2, 0}) == 1);
  CHECK(Pick({2, 5, 5}) == 1);
  CHECK(Pick({NaN, -4, NaN}) == 1);
  CHECK(Pick({NaN, -Inf}) == 0);
  CHECK(Pick({0, Inf, Inf}) == 1);
}

TEST_CASE("a pick is sampled in the order of the rows") {
  const std::vector<double> Logits = {0, std::log(2), -Inf, 0};
  const double Uniforms[] = {0, 0.24, 0.26, 0.74, 0.76, 0.999};
  const double Actions[] = {0, 0, 1, 1, 3, 3};
  for (int I = 0; I < 6; ++I)
    CHECK(sampleAction(Rule::Pick, Logits, Uniforms[I], 1) == Actions[I]);
  CHECK(std::exp(logProbability(Rule::Pick, Logits, 1, 1)) ==
        doctest::Approx(0.5));
  CHECK(logProbability(Rule::Pick, Logits, 2, 1) == -Inf);
  CHECK(entropy(Rule::Pick, Logits, 1) == doctest::Approx(1.5 * std::log(2)));
}

TEST_CASE("a value is the logit, or normal around it") {
  CHECK(greedyAction(Rule::Value, 2.5) == 2.5);
  CHECK(greedyAction(Rule::Value, NaN) == 0);
  CHECK(greedyAction(Rule::Value, -Inf) == 0);
  CHECK(sampleAction(Rule::Value, 2.5, 0.5, 3) == 2.5);
  CHECK(sampleAction(Rule::Value, 1, 0.975, 2) ==
        doctest::Approx(1 + 2 * 1.959963984540054).epsilon(1e-14));
  CHECK(std::isfinite(sampleAction(Rule::Value, 0, 0, 1)));
  CHECK(logProbability(Rule::Value, 1, 1, 1) ==
        doctest::Approx(-0.9189385332046727));
}

TEST_CASE("a threshold is a coin") {
  CHECK(greedyAction(Rule::Threshold, 1e-300) == 1);
  CHECK(greedyAction(Rule::Threshold, 0.0) == 0);
  CHECK(greedyAction(Rule::Threshold, NaN) == 0);
  CHECK(sampleAction(Rule::Threshold, 0.0, 0.4999, 1) == 1);
  CHECK(sampleAction(Rule::Threshold, 0.0, 0.5, 1) == 0);
  CHECK(logProbability(Rule::Threshold, NaN, 0, 1) == 0);
  CHECK(entropy(Rule::Threshold, 0.0, 1) == doctest::Approx(std::log(2)));
  CHECK(entropy(Rule::Threshold, Inf, 1) == 0);
}

TEST_CASE("the probability of the positive action") {
  CHECK(positiveProbability(0, 1) == 0.5);
  CHECK(positiveProbability(1, 1) == doctest::Approx(0.7310585786300049));
  CHECK(positiveProbability(2, 2) == positiveProbability(1, 1));
  CHECK(positiveProbability(1e300, 1e-300) == 1);
  CHECK(positiveProbability(-1e300, 1e-300) == 0);
  CHECK(positiveProbability(std::nan(""), 1) == 0);
  CHECK(positiveProbability(-3, 1) + positiveProbability(3, 1) ==
        doctest::Approx(1));
}

TEST_CASE("uniform numbers: reference vectors") {
  CHECK(uniform(0, 0x0) == 0x1.4e0dba5e9a32fp-1);
  CHECK(uniform(1, 0x0) == 0x1.7906ac21d0e58p-2);
  CHECK(uniform(0, 0x1) == 0x1.169fb51912560p-5);
  CHECK(uniform(42, 0x123456789abcdef) == 0x1.fa85a56018362p-1);
  CHECK(uniform(~0ULL, ~0ULL) == 0x1.8c2450f99e91ep-2);
}

TEST_CASE("uniform numbers depend on nothing but their arguments") {
  std::vector<double> Forwards, Backwards;
  for (uint64_t Site = 0; Site < 1000; ++Site)
    Forwards.push_back(uniform(7, Site));
  for (uint64_t Site = 1000; Site-- > 0;)
    Backwards.insert(Backwards.begin(), uniform(7, Site));
  CHECK(Forwards == Backwards);
  CHECK(std::set<double>(Forwards.begin(), Forwards.end()).size() == 1000);
  double Mean = 0;
  unsigned Same = 0;
  for (uint64_t Site = 0; Site < 1000; ++Site) {
    CHECK(Forwards[Site] >= 0);
    CHECK(Forwards[Site] < 1);
    Mean += Forwards[Site] / 1000;
    Same += (uniform(8, Site) < 0.5) == (Forwards[Site] < 0.5);
  }
  CHECK(Mean == doctest::Approx(0.5).epsilon(0.05));
  CHECK(Same > 420); // Another seed is another, independent sequence.
  CHECK(Same < 580);
}
