//===- PriorityPolicyTest.cpp - Priorities scaled by a policy -------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "plugin/regalloc/PriorityPolicy.h"
#include "FileBuilder.h"
#include "RegallocPolicyFile.h"
#include "llvm/ADT/StringExtras.h"
#include <cmath>
#include <doctest/doctest.h>
#include <limits>

using namespace llvm;
using namespace nestor;

constexpr unsigned MaxRank = (1u << 24) - 1;
constexpr unsigned Class = 0xa5000000; // Any bits above the rank.
constexpr double Inf = std::numeric_limits<double>::infinity();

TEST_CASE("the answer 0 keeps every priority") {
  for (unsigned Stock : {0u, 1u, MaxRank, Class, Class | 12345, ~0u})
    CHECK(scaledPriority(Stock, 0) == Stock);
  CHECK(scaledPriority(12345, -0.0) == 12345);
}

TEST_CASE("an answer scales the rank by a power of two within its class") {
  CHECK(scaledPriority(100, 1) == 200);
  CHECK(scaledPriority(100, -1) == 50);
  CHECK(scaledPriority(Class | 100, 3) == (Class | 800));
  CHECK(scaledPriority(100, 0.5) == 150); // Linear between powers of two.
  CHECK(scaledPriority(100, -0.5) == 75);
  CHECK(scaledPriority(3, -1) == 2); // Rounded to the next, halves upwards.
}

TEST_CASE("whatever the answer, the class stays") {
  for (double Answer : {64.0, 1e300, Inf, -64.0, -1e300, -Inf, 23.7, -0.1})
    for (unsigned Stock : {Class, Class | 1, Class | 77777, Class | MaxRank}) {
      const unsigned Scaled = scaledPriority(Stock, Answer);
      CHECK((Scaled & ~MaxRank) == Class);
    }
  CHECK(scaledPriority(Class | 1, Inf) == (Class | MaxRank));
  CHECK(scaledPriority(Class | MaxRank, -Inf) == Class);
}

TEST_CASE("a larger answer never gives a smaller priority") {
  for (unsigned Stock : {Class, Class | 1, Class | 4711, Class | MaxRank}) {
    unsigned Before = 0;
    for (double Answer = -40; Answer <= 40; Answer += 0.125) {
      const unsigned Scaled = scaledPriority(Stock, Answer);
      CHECK(Scaled >= Before);
      Before = Scaled;
    }
  }
}

static PriorityInputs inputs() {
  PriorityInputs X;
  for (size_t I = 0; I < X.size(); ++I)
    X[I] = double(1 << I) - 1; // What the transform makes I.
  return X;
}

static FileBuilder policy(std::vector<std::string> Features,
                          std::vector<float> Weights) {
  return linearPolicy("regalloc-priority", "value", std::move(Features), Weights);
}

/// The only policy in \p File.
static PriorityPolicy loadOne(const PolicyOnDisk &File) {
  auto Members = cantFail(PriorityPolicy::load(File.path()));
  REQUIRE(Members.size() == 1);
  return std::move(Members.front());
}

TEST_CASE("a policy reads features by their names, in any order") {
  CHECK(priorityFeatures().size() == inputs().size());
  const std::string Last = priorityFeatures().back().str();
  const PolicyOnDisk File(policy({Last, "stage"}, {1, 10}));
  auto Policy = loadOne(File);
  CHECK(Policy.answer(inputs(), {}).Value == 6 + 10);
}

TEST_CASE("members of a portfolio answer as the single policies do") {
  const std::vector<std::string> Features = {"stage", "li_size"};
  const std::vector<std::vector<float>> Rows = {{2, 0}, {0, 3}, {-1, 1}};
  const PolicyOnDisk Whole(linearPortfolio("regalloc-priority", "value", Features, Rows));
  auto Members = cantFail(PriorityPolicy::load(Whole.path()));
  REQUIRE(Members.size() == Rows.size());
  PriorityInputs X = inputs();
  X[0] = 7; // Which the transform makes 3.
  const double Expected[] = {2, 9, 2};
  for (size_t K = 0; K < Rows.size(); ++K) {
    auto Policy = loadOne(PolicyOnDisk(policy(Features, Rows[K])));
    for (const Draw &How : {Draw{}, Draw{0.2, 3}})
      CHECK(Members[K].answer(X, How).Value == Policy.answer(X, How).Value);
    CHECK(Members[K].answer(X, {}).Value == Expected[K]);
  }
}

TEST_CASE("samples lie around the answer") {
  const PolicyOnDisk File(policy({"stage"}, {2}));
  auto Policy = loadOne(File);
  CHECK(Policy.answer(inputs(), {0.5, 3}).Value == 2);
  CHECK(Policy.answer(inputs(), {0.9, 3}).Value > 2);
  CHECK(Policy.answer(inputs(), {0.1, 3}).Value < 2);
}

TEST_CASE("a policy whose logit is not finite keeps the stock priority") {
  const float Huge = std::numeric_limits<float>::max();
  PriorityInputs X = inputs();
  X[0] = X[1] = 1e30;
  for (std::vector<float> Weights : {std::vector<float>{Huge, Huge}, {Huge, -Huge},
                                     {-Huge, -Huge}}) {
    const PolicyOnDisk File(policy({"li_size", "stage"}, Weights));
    auto Policy = loadOne(File);
    const PriorityAnswer Answer = Policy.answer(X, {});
    CHECK(scaledPriority(Class | 100, Answer.Value) == (Class | 100));
  }
}

TEST_CASE("a policy that cannot decide priorities says why") {
  auto Refused = [](FileBuilder B, StringRef Why) {
    const PolicyOnDisk File(std::move(B));
    const std::string Error = errorOf(PriorityPolicy::load(File.path()));
    CAPTURE(Error);
    CHECK(StringRef(Error).contains(Why));
  };
  Refused(linearPolicy("regalloc-eviction", "pick", {"stage"}, {1}),
          "it is for regalloc-eviction, not for regalloc-priority");
  Refused(linearPolicy("regalloc-priority", "pick", {"stage"}, {1}),
          "its rule is pick, and priority needs value");
  Refused(policy({"stage", "mask", "loop_depth"}, {1, 1, 1}),
          "does not offer: mask, loop_depth");
  CHECK(errorOf(PriorityPolicy::load("/nonexistent")) != "");
}
