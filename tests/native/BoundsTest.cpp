//===- BoundsTest.cpp - Answers that are known before all features are ----===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "FileBuilder.h"
#include "policy/Policy.h"
#include "policy/PolicyFile.h"
#include <doctest/doctest.h>
#include <limits>
#include <random>

using namespace llvm;
using namespace nestor;

constexpr size_t Features = 5;

static std::unique_ptr<Policy> parsed(const FileBuilder &B) {
  Expected<LoadedPolicy> P = parsePolicy(B.build());
  if (P)
    return std::move(P->Evaluator);
  FAIL(toString(P.takeError()));
  return nullptr;
}

static double drawn(std::mt19937 &Random, double Scale) {
  return Scale * std::uniform_real_distribution<>(-1, 1)(Random);
}

template <typename T>
static std::vector<T> drawnNumbers(std::mt19937 &Random, size_t Count, double Scale) {
  std::vector<T> Result(Count);
  for (T &X : Result)
    X = T(drawn(Random, Scale));
  return Result;
}

static std::unique_ptr<Policy> network(std::mt19937 &Random, int64_t Outputs) {
  FileBuilder B;
  B.Meta = metadata("mlp", "log", {"a", "b", "c", "d", "e"});
  B.f64("normalise.shift", drawnNumbers<double>(Random, Features, 3));
  B.f64("normalise.scale", drawnNumbers<double>(Random, Features, 1));
  B.f32("layer.0.weight", {6, Features}, drawnNumbers<float>(Random, 6 * Features, 1));
  B.f32("layer.0.bias", {6}, drawnNumbers<float>(Random, 6, 4));
  B.f32("layer.1.weight", {Outputs, 6}, drawnNumbers<float>(Random, 6 * Outputs, 1));
  B.f32("layer.1.bias", {Outputs}, drawnNumbers<float>(Random, Outputs, 4));
  return parsed(B);
}

/// How nodes of several trees may lie in a file.
enum class Layout { TreeByTree, LevelByLevel };

/// Complete trees of three levels, one of them with values that decide alone, and one there twice.
static std::unique_ptr<Policy> trees(std::mt19937 &Random, double Scale = 1,
                                     Layout Lie = Layout::TreeByTree) {
  constexpr int32_t Trees = 20, Inner = 7, Each = 15;
  auto Place = [&](int32_t T, int32_t N) {
    return Lie == Layout::TreeByTree ? T * Each + N : N * Trees + T;
  };
  std::vector<int32_t> Root, Feature(Trees * Each, -1), Left(Trees * Each), Right(Trees * Each);
  std::vector<double> Threshold(Trees * Each), Value(Trees * Each);
  for (int32_t T = 0; T < Trees; ++T) {
    Root.push_back(Place(T, 0));
    for (int32_t N = 0; N < Each; ++N) {
      const int32_t At = Place(T, N);
      if (N >= Inner) {
        Value[At] = Scale * (T == 7 ? (N % 2 ? -1000 : 0) : drawn(Random, 1));
        continue;
      }
      Feature[At] = int32_t(Random() % Features);
      Left[At] = Place(T, 2 * N + 1);
      Right[At] = Place(T, 2 * N + 2);
      Threshold[At] = drawn(Random, 100);
    }
  }
  Root.push_back(Root.front());
  FileBuilder B;
  B.Meta = metadata("trees", "none", {"a", "b", "c", "d", "e"});
  B.i32("tree.root", Root).i32("tree.feature", Feature).i32("tree.left", Left);
  B.i32("tree.right", Right).f64("tree.threshold", Threshold).f64("tree.value", Value);
  return parsed(B);
}

/// How often the bounds settled the answer for boxes that are no point.
struct Settled {
  unsigned Never = 0, Always = 0;
  Settled &operator+=(const Settled &Other) {
    Never += Other.Never;
    Always += Other.Always;
    return *this;
  }
};

/// Boxes of rows: where neverPositive() says so, no row in the box, nor a corner of it,
/// has a logit above 0, and where alwaysPositive() does, every one.
static Settled checkBoxes(Policy &P, std::mt19937 &Random) {
  Settled Found;
  for (unsigned Box = 0; Box < 400; ++Box) {
    std::vector<double> Lowest, Highest, X(Features);
    const unsigned Known = Random() % 32;
    for (size_t I = 0; I < Features; ++I) {
      const double A = drawn(Random, 150), B = drawn(Random, 150);
      Lowest.push_back(std::min(A, B));
      Highest.push_back(Known >> I & 1 ? Lowest.back() : std::max(A, B));
      if (!(Known >> I & 1) && Random() % 4 == 0) {
        Lowest.back() = std::numeric_limits<double>::lowest();
        Highest.back() = std::numeric_limits<double>::max();
      }
    }
    const unsigned Parts = P.neverPositive(Lowest, Highest);
    const bool Never = Parts != 0;
    CHECK(P.neverPositive(Lowest, Highest, Parts) == Parts);
    CHECK_FALSE((Parts > 1 && P.neverPositive(Lowest, Highest, Parts - 1)));
    const bool Always = P.alwaysPositive(Lowest, Highest);
    if (Known == 31)
      CHECK(Never == !(P.logit(Lowest) > 0));
    else
      Found += {Never, Always};
    CHECK_FALSE((Never && Always));
    for (unsigned Row = 0; (Never || Always) && Row < 64; ++Row) {
      for (size_t I = 0; I < Features; ++I) {
        const double Part = std::uniform_real_distribution<>(0, 1)(Random);
        X[I] = Row < 32 ? (Row >> I & 1 ? Highest[I] : Lowest[I])
                        : Lowest[I] * (1 - Part) + Highest[I] * Part;
      }
      CHECK((P.logit(X) > 0) == Always);
    }
  }
  return Found;
}

TEST_CASE("the logits of a box have the sign that the bounds say") {
  std::mt19937 Random(1);
  Settled Networks, Forests;
  for (unsigned K = 0; K < 15; ++K) {
    Networks += checkBoxes(*network(Random, 1 + K % 2), Random);
    Forests += checkBoxes(*trees(Random), Random);
  }
  CHECK(Networks.Never > 400);
  CHECK(Networks.Always == 0); // Networks are not asked.
  CHECK(Forests.Never > 400);
  CHECK(Forests.Always > 100);
}

TEST_CASE("the order of nodes and the size of values do not matter") {
  std::mt19937 Random(2);
  Settled Usual, Tiny, Huge;
  for (unsigned K = 0; K < 10; ++K) {
    const Layout Lie = K % 2 ? Layout::LevelByLevel : Layout::TreeByTree;
    Usual += checkBoxes(*trees(Random, 1, Lie), Random);
    Tiny += checkBoxes(*trees(Random, 0x1p-120, Lie), Random);
    Huge += checkBoxes(*trees(Random, 0x1p118, Lie), Random);
  }
  for (const Settled &S : {Usual, Tiny, Huge}) {
    CHECK(S.Never > 300);
    CHECK(S.Always > 20);
  }
}

TEST_CASE("values beyond what bounds can hold say nothing that is wrong") {
  std::mt19937 Random(3);
  for (double Scale : {1e-300, 1e-43, 0x1p128, 1e300})
    for (unsigned Box = 0; Box < 200; ++Box) {
      std::unique_ptr<Policy> P = trees(Random, Scale);
      const std::vector<double> X = drawnNumbers<double>(Random, Features, 150);
      CHECK_FALSE((P->neverPositive(X, X) && P->logit(X) > 0));
      CHECK_FALSE((P->alwaysPositive(X, X) && !(P->logit(X) > 0)));
    }
}

TEST_CASE("bounds that are not finite say nothing") {
  FileBuilder B;
  B.Meta = metadata("mlp", "log", {"a", "b"});
  B.f64("normalise.shift", {0, 0}).f64("normalise.scale", {8, 8});
  B.f32("layer.0.weight", {1, 2}, {-3e38f, 3e38f}).f32("layer.0.bias", {1}, {-1});
  CHECK_FALSE(parsed(B)->neverPositive({1, 1}, {1, 1})); // inf - inf
  CHECK_FALSE(parsed(B)->neverPositive({0, 0}, {1, 1}));
  CHECK(parsed(B)->neverPositive({0, 0}, {0, 0}));
  FileBuilder Trees = treesPolicy();
  CHECK_FALSE(parsed(Trees)->neverPositive({10, 0}, {10, 0}));
}

TEST_CASE("quantiles say nothing") {
  CHECK_FALSE(parsed(quantilePolicy({-1, 0, 0}))->neverPositive({0}, {9}));
}
