//===- PolicyTest.cpp - Arithmetic against values worked out by hand ------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "policy/Policy.h"
#include "FileBuilder.h"
#include "policy/PolicyFile.h"
#include <cmath>
#include <doctest/doctest.h>
#include <limits>

using namespace llvm;
using namespace nestor;

static double logit(const FileBuilder &B, std::vector<double> X) {
  Expected<LoadedPolicy> P = parsePolicy(B.build());
  if (!P) {
    FAIL(toString(P.takeError()));
    return 0;
  }
  double First = P->Evaluator->logit(X);
  // Scratch memory is reused: other inputs in between change nothing.
  for (double Other : {-1e18, 0.0, 7.0}) {
    P->Evaluator->logit(std::vector<double>(X.size(), Other));
    CHECK(P->Evaluator->logit(X) == First);
  }
  return First;
}

/// A single layer on one-hot features: x = 1 gives z = \p Z.
static FileBuilder oneLayer(std::vector<float> W, float Bias,
                            std::vector<double> Z) {
  FileBuilder B;
  std::vector<std::string> Names;
  for (size_t I = 0; I < W.size(); ++I)
    Names.push_back(std::string(1, char('a' + I)));
  B.Meta = metadata("mlp", "log", std::move(Names));
  B.f64("normalise.shift", std::vector<double>(W.size(), 0));
  B.f64("normalise.scale", Z);
  B.f32("layer.0.weight", {1, int64_t(W.size())}, W);
  B.f32("layer.0.bias", {1}, {Bias});
  return B;
}

TEST_CASE("policies that pick or give a number have a range") {
  for (const char *Name : {"pick", "value"}) {
    FileBuilder B = treesPolicy();
    B.Meta["rule"] = Name;
    Expected<LoadedPolicy> P = parsePolicy(B.range({-1, 2, 5, 5}).build());
    REQUIRE(bool(P));
    CHECK(P->inRange(0, 2));
    CHECK_FALSE(P->inRange(1, 6));
  }
}

TEST_CASE("squash is a piecewise-linear logarithm") {
  const std::pair<double, double> Known[] = {
      {0, 0},      {1, 1},  {2, 1.5},  {3, 2},     {5, 2.5},
      {7, 3},      {8, 3.125}, {1023, 10}, {0.5, 0.5}, {0x1p62, 62}};
  for (auto [X, Y] : Known) {
    CHECK(squash(X) == Y);
    CHECK(squash(-X) == -Y);
  }
  CHECK(squash(double(std::numeric_limits<int64_t>::min())) == -63);
  for (int X = -5000; X < 5000; ++X)
    CHECK(squash(X) < squash(X + 1));
}

TEST_CASE("a network's logit, by hand") {
  CHECK(logit(logPolicy(), {3, -3}) == 1.25);
  // z = (-2, 0): hidden (max(0, 0.5 - 6), 1 + 2) = (0, 3); 0.25 - 12.
  CHECK(logit(logPolicy(), {0, 0}) == -11.75);
  FileBuilder Two = logPolicy();
  Two.f32("layer.1.weight", {2, 2}, {2, -4, 1, 1});
  Two.f32("layer.1.bias", {2}, {0.25, 0});
  CHECK(logit(Two, {3, -3}) == 3.5 - 1.25);
}

TEST_CASE("inputs are clamped to 8 in both directions") {
  FileBuilder B = oneLayer({1}, 0, {1e300});
  CHECK(logit(B, {1}) == 8);
  CHECK(logit(B, {-9e18}) == -8);
  CHECK(logit(oneLayer({1}, 0, {-1e300}), {1e18}) == -8);
}

TEST_CASE("sums are rounded after each product and each addition, in order") {
  // 2^24 + 1 is 2^24 in f32, twice; any other order gives 1 or 2.
  CHECK(logit(oneLayer({1, 1, -0x1p24f}, 0x1p24f, {1, 1, 1}), {1, 1, 1}) == 0);
  CHECK(logit(oneLayer({-0x1p24f, 1, 1}, 0x1p24f, {1, 1, 1}), {1, 1, 1}) == 2);
  // (1 + 2^-23)^2 is rounded to 1 + 2^-22 before it is added: no fused product.
  CHECK(logit(oneLayer({1 + 0x1p-23f}, -(1 + 0x1p-22f), {1 + 0x1p-23}), {1}) ==
        0);
  // The same with more outputs than a vector register holds.
  FileBuilder B = oneLayer({1, 1, 1}, 0, {1, 1, 1});
  std::vector<float> W;
  for (int I = 0; I < 67; ++I)
    W.insert(W.end(), {1, 1, -0x1p24f});
  B.f32("layer.0.weight", {67, 3}, W);
  B.f32("layer.0.bias", {67}, std::vector<float>(67, 0x1p24f));
  B.f32("layer.1.weight", {1, 67}, std::vector<float>(67, 1));
  B.f32("layer.1.bias", {1}, {3});
  CHECK(logit(B, {1, 1, 1}) == 3);
}

TEST_CASE("a network that overflows answers and does not trap") {
  FileBuilder B = oneLayer({3e38f, 3e38f}, 0, {8, 8});
  CHECK(logit(B, {1, 1}) == std::numeric_limits<double>::infinity());
  Expected<LoadedPolicy> P =
      parsePolicy(oneLayer({3e38f, -3e38f}, 0, {8, 8}).build());
  REQUIRE(bool(P));
  double Logit = P->Evaluator->logit({1, 1}); // inf - inf
  CHECK(std::isnan(Logit));
  CHECK_FALSE(Logit > 0);
}

TEST_CASE("quantiles count the boundaries at or below the input") {
  const double Counts[][2] = {{-9, 0}, {0.5, 0}, {1, 1},   {1.5, 1}, {2, 3},
                              {4.9, 3}, {5, 4},  {1e300, 4}, {-1e300, 0}};
  for (auto [X, Count] : Counts) {
    float Z = float(Count) / 4;
    CHECK(logit(quantilePolicy({1, 0, 0}), {X}) == Z);
    CHECK(logit(quantilePolicy({0, 1, 0}), {X}) == std::sqrt(Z));
    CHECK(logit(quantilePolicy({0, 0, 1}), {X}) == Z * Z);
  }
  // Inputs are rounded to f32 before they are compared.
  FileBuilder B = quantilePolicy();
  B.f32("normalise.boundaries", {1, 1}, {0x1p24f});
  CHECK(logit(B, {0x1p24 - 0.25}) == 1);
}

TEST_CASE("a z-score stands behind each feature's quantiles") {
  CHECK(logit(scorePolicy({0, 0, 0, 1}), {7}) == 1.5);
  CHECK(logit(scorePolicy({0, 0, 0, 1}), {-2}) == -3);
  CHECK(logit(scorePolicy({1, 0, 0, 1}), {2}) == 0.75 - 1);
  // The input, the difference and the product are each rounded to f32.
  FileBuilder B = scorePolicy({0, 0, 0, 1});
  B.f32("normalise.mean", {1}, {0x1p24f}).f32("normalise.scale", {1}, {3});
  CHECK(logit(B, {0x1p24 + 3}) == 12);
}

TEST_CASE("trees add up their leaves") {
  const double Known[][3] = {{10, 2.5, 0.125 + 8}, {10, 2.6, 0.25 + 8},
                             {10.5, 0, -0.75 + 4}, {-1e18, 0.5, 0.125 + 4},
                             {1e18, 1e18, -0.75 + 8}};
  for (auto [X, Y, Sum] : Known)
    CHECK(logit(treesPolicy(), {X, Y}) == Sum);
}

TEST_CASE("trees are added in order, in f64, for any number of them") {
  for (int Trees : {1, 7, 8, 9, 16, 17, 250}) {
    // Tree T is a chain of T % 5 splits; all give X <= 0 ? 2^53 or so : 1.
    FileBuilder B = treesPolicy();
    std::vector<int32_t> Root, Feature, Left, Right;
    std::vector<double> Threshold, Value;
    double Low = 0, High = 0;
    for (int T = 0; T < Trees; ++T) {
      Root.push_back(int32_t(Feature.size()));
      for (int Split = 0; Split < T % 5; ++Split) {
        int32_t Self = int32_t(Feature.size());
        Feature.insert(Feature.end(), {0, -1});
        Left.insert(Left.end(), {Self + 1, 0});
        Right.insert(Right.end(), {Self + 2, 0});
        Threshold.insert(Threshold.end(), {-double(Split), 0});
        Value.insert(Value.end(), {0, T ? 1.0 : 0x1p53});
      }
      double Last = T % 3 - 0.3;
      Feature.push_back(-1), Left.push_back(0), Right.push_back(0);
      Threshold.push_back(0), Value.push_back(Last);
      Low += T % 5 ? 1.0 : Last;
      High += Last;
    }
    B.i32("tree.root", Root).i32("tree.feature", Feature);
    B.i32("tree.left", Left).i32("tree.right", Right);
    B.f64("tree.threshold", Threshold).f64("tree.value", Value);
    CHECK(logit(B, {-100, 0}) == Low);
    CHECK(logit(B, {100, 0}) == High);
  }
}

TEST_CASE("trees that share nodes and roots in any order") {
  FileBuilder B = treesPolicy();
  B.i32("tree.root", {5, 0, 0, 2});
  CHECK(logit(B, {10, 2}) == 8 + 0.125 + 0.125 + 0.125);
}
