//===- EvaluatorFile.cpp - Makes a policy from its file's tensors ---------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "EvaluatorFile.h"
#include "llvm/ADT/STLExtras.h"
#include <optional>

using namespace llvm;

namespace nestor {

constexpr size_t MaxLayers = 8, MaxWidth = 4096;
constexpr size_t MaxNodes = size_t(1) << TreesPolicy::Node::IndexBits;
constexpr size_t MaxTrees = size_t(1) << 16;
constexpr unsigned MaxHeight = 512;
constexpr unsigned MaxMembers = 64; ///< Of a portfolio.

static Error bad(const Twine &Why) { return createStringError(Why); }

static Expected<std::vector<MLPPolicy::Layer>> readLayers(TensorReader &Reader,
                                                          uint64_t Inputs,
                                                          unsigned MostOutputs) {
  std::vector<MLPPolicy::Layer> Layers;
  for (size_t K = 0; Reader.has(("layer." + Twine(K) + ".weight").str()); ++K) {
    if (K == MaxLayers)
      return bad("the network has more than 8 layers");
    std::vector<uint64_t> Shape, BiasShape;
    auto Weights = Reader.take<float>("layer." + Twine(K) + ".weight",
                                      DType::F32, 2, Shape);
    if (!Weights)
      return Weights.takeError();
    auto Bias = Reader.take<float>("layer." + Twine(K) + ".bias", DType::F32, 1,
                                   BiasShape);
    if (!Bias)
      return Bias.takeError();
    uint64_t Out = Shape[0], In = Shape[1];
    uint64_t Expected = Layers.empty() ? Inputs : Layers.back().Out;
    if (In != Expected || BiasShape[0] != Out || !Out || Out > MaxWidth)
      return bad("layer " + Twine(K) + " does not fit the layer before it");
    MLPPolicy::Layer L{unsigned(In), unsigned(Out), {}, std::move(*Bias)};
    L.Weights.resize(Weights->size());
    for (uint64_t O = 0; O < Out; ++O)
      for (uint64_t I = 0; I < In; ++I)
        L.Weights[I * Out + O] = (*Weights)[O * In + I];
    Layers.push_back(std::move(L));
  }
  if (Layers.empty() || Layers.back().Out > MostOutputs)
    return bad("the network's last layer must have one to " + Twine(MostOutputs) +
               " outputs");
  return Layers;
}

namespace {
/// The tensors of a network; one of the two transforms is used.
struct Network {
  std::optional<MLPPolicy::LogTransform> Log;
  MLPPolicy::QuantileTransform Quantile;
  std::vector<MLPPolicy::Layer> Layers;

  std::unique_ptr<Policy> policy() && {
    if (Log)
      return std::make_unique<MLPPolicy>(std::move(*Log), std::move(Layers));
    return std::make_unique<MLPPolicy>(std::move(Quantile), std::move(Layers));
  }
};
} // namespace

/// Reads the tensor \p Name with one number per feature into \p Into.
template <typename T>
static Error readPerFeature(TensorReader &Reader, StringRef Name, DType Type,
                            uint64_t Features, std::vector<T> &Into) {
  std::vector<uint64_t> Shape;
  auto Values = Reader.take<T>(Name, Type, 1, Shape);
  if (!Values)
    return Values.takeError();
  if (Shape[0] != Features)
    return bad("tensor '" + Name + "' needs a value per feature");
  Into = std::move(*Values);
  return Error::success();
}

static Expected<Network> readNetwork(TensorReader &Reader, StringRef Transform,
                                     uint64_t Features, unsigned MostOutputs) {
  Network Result;
  std::vector<uint64_t> Shape;
  const bool HasScores = Transform == "quantile-z-score";
  if (Transform == "log") {
    Result.Log.emplace();
    if (Error E = readPerFeature(Reader, "normalise.shift", DType::F64, Features, Result.Log->Shift))
      return std::move(E);
    if (Error E = readPerFeature(Reader, "normalise.scale", DType::F64, Features, Result.Log->Scale))
      return std::move(E);
  } else if (Transform == "quantile" || HasScores) {
    auto Values =
        Reader.take<float>("normalise.boundaries", DType::F32, 2, Shape);
    if (!Values)
      return Values.takeError();
    if (Shape[0] != Features || !Shape[1])
      return bad("tensor 'normalise.boundaries' needs a row per feature");
    for (uint64_t Row = 0; Row < Features; ++Row)
      if (!llvm::is_sorted(ArrayRef(*Values).slice(Row * Shape[1], Shape[1])))
        return bad("tensor 'normalise.boundaries' is not ascending");
    MLPPolicy::QuantileTransform &Quantile = Result.Quantile;
    Quantile.Boundaries = unsigned(Shape[1]);
    Quantile.Values = std::move(*Values);
    if (HasScores) {
      if (Error E = readPerFeature(Reader, "normalise.mean", DType::F32, Features, Quantile.Mean))
        return std::move(E);
      if (Error E = readPerFeature(Reader, "normalise.scale", DType::F32, Features, Quantile.Scale))
        return std::move(E);
    }
  } else {
    return bad("unknown transform '" + Transform + "'");
  }
  const uint64_t Inputs = Result.Log ? 1 : HasScores ? 4 : 3;
  auto Layers = readLayers(Reader, Inputs * Features, MostOutputs);
  if (!Layers)
    return Layers.takeError();
  Result.Layers = std::move(*Layers);
  return std::move(Result);
}

/// The network with only output \p Row of its last layer.
static Network withOutput(Network Whole, unsigned Row) {
  MLPPolicy::Layer &Last = Whole.Layers.back();
  MLPPolicy::Layer One{Last.In, 1, {}, {Last.Bias[Row]}};
  for (unsigned I = 0; I < Last.In; ++I)
    One.Weights.push_back(Last.Weights[size_t(I) * Last.Out + Row]);
  Last = std::move(One);
  return Whole;
}

Expected<std::vector<std::unique_ptr<Policy>>>
readPortfolio(TensorReader &Reader, StringRef Transform, size_t Features) {
  Expected<Network> Whole = readNetwork(Reader, Transform, Features, MaxMembers);
  if (!Whole)
    return Whole.takeError();
  std::vector<std::unique_ptr<Policy>> Members;
  for (unsigned Row = 0; Row < Whole->Layers.back().Out; ++Row)
    Members.push_back(withOutput(*Whole, Row).policy());
  return std::move(Members);
}

static Expected<std::unique_ptr<Policy>> readTrees(TensorReader &Reader,
                                                   uint64_t Features) {
  std::vector<uint64_t> Shape;
  uint64_t Trees = 0, NodeCount = 0;
  auto Ints = [&](StringRef Name, uint64_t &Count) {
    auto Values = Reader.view<int32_t>("tree." + Name, DType::I32, 1, Shape);
    if (Values && !Count)
      Count = Shape[0];
    if (Values && Shape[0] != Count)
      Values = bad("the trees' tensors differ in length");
    return Values;
  };
  auto Reals = [&](StringRef Name) {
    auto Values = Reader.view<double>("tree." + Name, DType::F64, 1, Shape);
    if (Values && Shape[0] != NodeCount)
      Values = bad("the trees' tensors differ in length");
    return Values;
  };
  auto Root = Ints("root", Trees);
  if (!Root)
    return Root.takeError();
  auto Feature = Ints("feature", NodeCount);
  if (!Feature)
    return Feature.takeError();
  auto Left = Ints("left", NodeCount);
  if (!Left)
    return Left.takeError();
  auto Right = Ints("right", NodeCount);
  if (!Right)
    return Right.takeError();
  auto Threshold = Reals("threshold");
  if (!Threshold)
    return Threshold.takeError();
  auto Value = Reals("value");
  if (!Value)
    return Value.takeError();
  if (!Trees || Trees > MaxTrees || !NodeCount || NodeCount > MaxNodes)
    return bad("there are no trees or too many");

  // A compile reads these tens of thousands of nodes before it does anything else.
  // Children come after their parents, so one backward pass gives heights too.
  OwningArrayRef<TreesPolicy::Node> Nodes(NodeCount);
  OwningArrayRef<uint16_t> Heights(NodeCount);
  for (size_t I = NodeCount; I-- > 0;) {
    int64_t F = (*Feature)[I], L = (*Left)[I], R = (*Right)[I];
    Heights[I] = 0;
    if (F == -1) { // A leaf is its own child.
      if (L != 0 || R != 0)
        return bad("a tree's leaf has children");
      Nodes[I] = {(*Value)[I], 0, uint32_t(I), uint32_t(I)};
      continue;
    }
    if (F < 0 || F >= int64_t(Features))
      return bad("a tree refers to a feature that the policy does not have");
    int64_t Self = int64_t(I), N = int64_t(NodeCount);
    if (L <= Self || R <= Self || L >= N || R >= N)
      return bad("a tree's child does not come after its parent");
    if ((*Value)[I] != 0)
      return bad("a tree's inner node carries a value");
    Nodes[I] = {(*Threshold)[I], uint32_t(F), uint32_t(L), uint32_t(R)};
    Heights[I] = 1 + std::max(Heights[L], Heights[R]);
    if (Heights[I] > MaxHeight)
      return bad("a tree is more than 512 nodes deep");
  }
  std::vector<uint32_t> Roots;
  for (size_t I = 0; I < Trees; ++I) {
    const int32_t R = (*Root)[I];
    if (R < 0 || uint64_t(R) >= NodeCount)
      return bad("a tree's root lies outside the nodes");
    Roots.push_back(R);
  }
  return std::make_unique<TreesPolicy>(std::move(Nodes), std::move(Roots));
}

Expected<std::unique_ptr<Policy>> readEvaluator(TensorReader &Reader,
                                                StringRef Kind,
                                                StringRef Transform,
                                                size_t Features) {
  if (Kind == "mlp") {
    Expected<Network> Read = readNetwork(Reader, Transform, Features, 2);
    if (!Read)
      return Read.takeError();
    return std::move(*Read).policy();
  }
  if (Kind == "trees" && Transform == "none")
    return readTrees(Reader, Features);
  return bad("unknown kind '" + Kind + "' with transform '" + Transform + "'");
}

} // namespace nestor
