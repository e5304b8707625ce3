//===- EvaluatorFileTest.cpp - Tensors of networks, trees and portfolios -===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "PolicyChecks.h"
#include <cmath>
#include <limits>

using namespace llvm;
using namespace nestor;

TEST_CASE("tensors of a network that are wrong") {
  const float NaN = std::numeric_limits<float>::quiet_NaN();
  const float Inf = std::numeric_limits<float>::infinity();
  for (float Value : {NaN, Inf, -Inf}) {
    refused(logPolicy().f32("layer.0.bias", {2}, {0, Value}), "NaN");
    refused(logPolicy().f64("normalise.shift", {Value, 0}), "NaN");
    refused(quantilePolicy().f32("normalise.boundaries", {1, 2}, {0, Value}),
            "NaN");
  }
  refused(logPolicy().f64("layer.0.bias", {2, 2}), "wrong type");
  refused(logPolicy().f32("normalise.shift", {2}, {1, 1}), "wrong type");
  refused(logPolicy().f32("layer.0.bias", {2, 1}, {1, 1}), "rank");
  refused(logPolicy().f32("layer.0.bias", {3}, {1, 1, 1}), "fit");
  refused(logPolicy().f32("layer.1.weight", {1, 3}, {1, 1, 1}), "fit");
  refused(logPolicy().f32("layer.0.weight", {2, 3}, {1, 1, 1, 1, 1, 1}), "fit");
  refused(logPolicy().f64("normalise.scale", {1}), "per feature");
  refused(logPolicy().f32("extra", {1}, {1}), "'extra'");
  refused(logPolicy().f32("layer.3.weight", {1, 1}, {1}), "'layer.3.weight'");
  refused(logPolicy().f32("layer.1.weight", {3, 2}, {1, 1, 1, 1, 1, 1})
              .f32("layer.1.bias", {3}, {1, 1, 1}),
          "one to 2 outputs");
  refused(logPolicy().f32("layer.0.weight", {0, 2}, {}).f32("layer.0.bias", {0}, {}),
          "fit");
  for (StringRef Name : {"layer.0.weight", "layer.0.bias", "layer.1.bias",
                         "normalise.shift", "normalise.scale"}) {
    FileBuilder B = logPolicy();
    B.remove(Name);
    CHECK(parseError(B) != "");
  }
  refused(quantilePolicy().f32("normalise.boundaries", {1, 3}, {1, 3, 2}),
          "ascending");
  refused(quantilePolicy().f32("normalise.boundaries", {1, 0}, {}), "row");
  refused(quantilePolicy().f32("normalise.boundaries", {2, 1}, {1, 2}), "row");
  refused(quantilePolicy().f32("normalise.mean", {1}, {1}), "'normalise.mean'");
  refused(scorePolicy().f32("normalise.mean", {2}, {1, 2}), "per feature");
  refused(scorePolicy().f64("normalise.scale", {1}), "wrong type");
  refused(scorePolicy().f32("layer.0.weight", {2, 3}, {1, 1, 1, 1, 1, 1}), "fit");
}

TEST_CASE("a network's limits") {
  auto Layers = [](int Count) {
    FileBuilder B = logPolicy();
    B.remove("layer.0.weight"), B.remove("layer.0.bias");
    for (int K = 0; K < Count; ++K) {
      std::string Name = "layer." + std::to_string(K);
      B.f32(Name + ".weight", {1, K ? 1 : 2},
            std::vector<float>(K ? 1 : 2, 1.0f));
      B.f32(Name + ".bias", {1}, {0});
    }
    return B;
  };
  CHECK(parseError(Layers(8)) == "");
  refused(Layers(9), "8 layers");
  auto Wide = [](int64_t Width) {
    FileBuilder B = logPolicy();
    B.f32("layer.0.weight", {Width, 2}, std::vector<float>(2 * Width, 1.0f));
    B.f32("layer.0.bias", {Width}, std::vector<float>(Width, 0.0f));
    B.f32("layer.1.weight", {1, Width}, std::vector<float>(Width, 1.0f));
    return B;
  };
  CHECK(parseError(Wide(4096)) == "");
  CHECK(parseError(Wide(4097)) != "");
}

TEST_CASE("trees that are wrong") {
  auto Feature = [](std::vector<int32_t> V) {
    return treesPolicy().i32("tree.feature", V);
  };
  auto Left = [](std::vector<int32_t> V) {
    return treesPolicy().i32("tree.left", V);
  };
  refused(Feature({2, 1, -1, -1, -1, 1, -1, -1}), "feature");
  refused(Feature({-2, 1, -1, -1, -1, 1, -1, -1}), "feature");
  refused(Feature({0, 1, -1}), "differ in length");
  // Cycles: to itself, to an earlier node, to the root, out of the array.
  refused(Left({0, 2, 0, 0, 0, 6, 0, 0}), "after its parent");
  refused(Left({1, 1, 0, 0, 0, 6, 0, 0}), "after its parent");
  refused(Left({1, 0, 0, 0, 0, 6, 0, 0}), "after its parent");
  refused(Left({1, 8, 0, 0, 0, 6, 0, 0}), "after its parent");
  refused(Left({-1, 2, 0, 0, 0, 6, 0, 0}), "after its parent");
  refused(Left({1, 2, 0, 0, 3, 6, 0, 0}), "leaf");
  refused(treesPolicy().i32("tree.right", {4, 3, 1, 0, 0, 7, 0, 0}), "leaf");
  refused(treesPolicy().i32("tree.root", {0, 8}), "root");
  refused(treesPolicy().i32("tree.root", {-1}), "root");
  refused(treesPolicy().i32("tree.root", {}), "no trees");
  refused(treesPolicy().f64("tree.value", {1, 0, 0, 0, 0, 0, 0, 0}), "value");
  refused(treesPolicy().f64("tree.value", {0, 0, NAN, 0, 0, 0, 0, 0}), "NaN");
  refused(treesPolicy().f64("tree.threshold", {0, 0, 0, 0, 0, INFINITY, 0, 0}),
          "NaN");
  refused(treesPolicy().f64("tree.threshold", {0}), "differ in length");
  refused(treesPolicy().f64("tree.left", {0, 0, 0, 0, 0, 0, 0, 0}), "type");
  refused(treesPolicy().f32("tree.weights", {1}, {1}), "not part");
  refused(treesPolicy().i32("tree.root", std::vector<int32_t>(65537, 2)),
          "too many");
  CHECK(parseError(treesPolicy().i32("tree.root",
                                     std::vector<int32_t>(65536, 2))) == "");
  FileBuilder Empty = treesPolicy();
  for (StringRef Name : {"feature", "left", "right"})
    Empty.i32(("tree." + Name).str(), {});
  Empty.f64("tree.threshold", {}).f64("tree.value", {});
  refused(Empty, "no trees");
}

/// \p Depth splits below one another; all left children are the last node.
static FileBuilder chain(int32_t Depth) {
  FileBuilder B = treesPolicy();
  std::vector<int32_t> Feature(Depth, 0), Left(Depth, Depth), Right;
  for (int32_t I = 0; I < Depth; ++I)
    Right.push_back(I + 1);
  Feature.push_back(-1), Left.push_back(0), Right.push_back(0);
  B.i32("tree.root", {0}).i32("tree.feature", Feature);
  B.i32("tree.left", Left).i32("tree.right", Right);
  B.f64("tree.threshold", std::vector<double>(Depth + 1, 0.0));
  std::vector<double> Value(Depth + 1, 0.0);
  Value.back() = 1.5;
  B.f64("tree.value", Value);
  return B;
}

TEST_CASE("a chain of nodes may not be longer than the limit") {
  Expected<LoadedPolicy> P = parsePolicy(chain(512).build());
  REQUIRE(bool(P));
  CHECK(P->Evaluator->logit({1, 0}) == 1.5);
  refused(chain(513), "deep");
  refused(chain(1000000), "deep"); // No recursion, no quadratic time.
}

/// \p B with only output \p Row of its last layer, which is layer 1, as a network.
static FileBuilder member(FileBuilder B, const std::vector<float> &Weights, float Bias) {
  B.Meta["kind"] = "mlp";
  B.f32("layer.1.weight", {1, 2}, Weights).f32("layer.1.bias", {1}, {Bias});
  return B;
}

TEST_CASE("members of a portfolio have the logits of the single policies") {
  Expected<LoadedPolicy> Whole = parsePolicy(portfolio().build());
  REQUIRE(bool(Whole));
  CHECK_FALSE(Whole->Evaluator);
  REQUIRE(Whole->Members.size() == 3);
  REQUIRE(Whole->evaluators().size() == 3);
  const std::pair<std::vector<float>, float> Rows[] = {
      {{2, -4}, 0.25f}, {{0, 1}, 0}, {{-1, 0.5}, -3}};
  for (size_t K = 0; K < 3; ++K) {
    const auto &[Weights, Bias] = Rows[K];
    Expected<LoadedPolicy> One = parsePolicy(member(portfolio(), Weights, Bias).build());
    REQUIRE(bool(One));
    REQUIRE(One->evaluators().size() == 1);
    for (double A : {-7.0, 0.0, 3.0, 1e9})
      for (double B : {-3.0, 0.0, 100.0})
        CHECK(Whole->evaluators()[K]->logit({A, B}) == One->Evaluator->logit({A, B}));
  }
  // Of the hidden values 2.5 and 1: each member answers by its own row.
  CHECK(Whole->evaluators()[0]->logit({3, -3}) == 1.25);
  CHECK(Whole->evaluators()[1]->logit({3, -3}) == 1);
  CHECK(Whole->evaluators()[2]->logit({3, -3}) == -5);
}

TEST_CASE("the two outputs of a portfolio are two members") {
  FileBuilder B = quantilePolicy({1, 0, 0}); // One network: y1 - y0.
  B.Meta["rule"] = "value";
  B.Meta["kind"] = "portfolio";
  Expected<LoadedPolicy> P = parsePolicy(B.build());
  REQUIRE(bool(P));
  REQUIRE(P->Members.size() == 2);
  CHECK(P->Members[0]->logit({2}) == 0);
  CHECK(P->Members[1]->logit({2}) == 0.75);
}

TEST_CASE("portfolios that are wrong") {
  FileBuilder B = portfolio();
  B.Meta.erase("rule"); // It is 'threshold' then.
  refused(B, "a portfolio cannot have the rule 'threshold'");
  B = portfolio();
  B.Meta["transform"] = "none";
  refused(B, "transform");
  refused(portfolio().f32("layer.1.bias", {2}, {0, 0}), "fit");
  refused(portfolio().f32("layer.1.bias", {3}, {0, NAN, 0}), "NaN");
  refused(portfolio().f32("layer.1.weight", {0, 2}, {}).f32("layer.1.bias", {0}, {}),
          "fit");
  auto Members = [](int64_t Count) {
    return portfolio()
        .f32("layer.1.weight", {Count, 2}, std::vector<float>(2 * Count, 1))
        .f32("layer.1.bias", {Count}, std::vector<float>(Count, 0));
  };
  CHECK(parseError(Members(1)) == "");
  CHECK(parseError(Members(64)) == "");
  refused(Members(65), "one to 64 outputs");
}
