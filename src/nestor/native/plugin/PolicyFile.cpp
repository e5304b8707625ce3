//===- PolicyFile.cpp - Loads a policy file (docs/reference/formats.md) ---===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "PolicyFile.h"
#include "SafeTensors.h"
#include "UserFile.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/Endian.h"
#include <cmath>
#include <limits>

using namespace llvm;

namespace nestor {

constexpr int64_t FormatVersion = 1;
constexpr size_t MaxFeatures = 1024, MaxLayers = 8, MaxWidth = 4096;
constexpr size_t MaxNodes = size_t(1) << 22, MaxTrees = size_t(1) << 16;
constexpr unsigned MaxHeight = 512;

static Error bad(const Twine &Why) {
  return createStringError(Why);
}

namespace {
/// Takes tensors by name and shape, and knows which ones nobody asked for.
class TensorReader {
public:
  explicit TensorReader(const SafeTensors &File) : File(File) {}

  bool has(StringRef Name) const { return File.Tensors.contains(Name); }

  const Tensor *find(StringRef Name) const {
    auto It = File.Tensors.find(Name);
    return It == File.Tensors.end() ? nullptr : &It->second;
  }

  /// The elements of \p Name, which must have type \p Type and \p Rank
  /// dimensions, all finite. \p Shape receives the dimensions.
  template <typename T>
  Expected<std::vector<T>> take(const Twine &NameTwine, DType Type,
                                unsigned Rank, std::vector<uint64_t> &Shape) {
    std::string Name = NameTwine.str();
    const Tensor *Found = find(Name);
    if (!Found)
      return bad("tensor '" + Name + "' is missing");
    if (Found->Type != Type || Found->Shape.size() != Rank)
      return bad("tensor '" + Name + "' has the wrong type or rank");
    Taken.insert(Name);
    Shape = Found->Shape;
    std::vector<T> Elements(Found->Bytes.size() / sizeof(T));
    for (size_t I = 0; I < Elements.size(); ++I) {
      Elements[I] = support::endian::read<T, endianness::little>(
          Found->Bytes.data() + I * sizeof(T));
      if (!std::isfinite(double(Elements[I])))
        return bad("tensor '" + Name + "' holds NaN or infinity");
    }
    return Elements;
  }

  Error checkAllTaken() const {
    for (const auto &Entry : File.Tensors)
      if (!Taken.contains(Entry.getKey()))
        return bad("tensor '" + Entry.getKey() + "' is not part of this kind");
    return Error::success();
  }

private:
  const SafeTensors &File;
  StringSet<> Taken;
};
} // namespace

static Expected<std::vector<MLPPolicy::Layer>> readLayers(TensorReader &Reader,
                                                          uint64_t Inputs) {
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
  if (Layers.empty() || Layers.back().Out > 2)
    return bad("the network's last layer must have one or two outputs");
  return Layers;
}

static Expected<std::unique_ptr<Policy>>
readMLP(TensorReader &Reader, StringRef Transform, uint64_t Features) {
  std::vector<uint64_t> Shape;
  if (Transform == "log") {
    MLPPolicy::LogTransform Log;
    for (auto [Name, Into] : {std::pair("normalise.shift", &Log.Shift),
                              std::pair("normalise.scale", &Log.Scale)}) {
      auto Values = Reader.take<double>(Name, DType::F64, 1, Shape);
      if (!Values)
        return Values.takeError();
      if (Shape[0] != Features)
        return bad(Twine("tensor '") + Name + "' needs a value per feature");
      *Into = std::move(*Values);
    }
    auto Layers = readLayers(Reader, Features);
    if (!Layers)
      return Layers.takeError();
    return std::make_unique<MLPPolicy>(std::move(Log), std::move(*Layers));
  }
  if (Transform != "quantile")
    return bad("unknown transform '" + Transform + "'");
  auto Values = Reader.take<float>("normalise.boundaries", DType::F32, 2, Shape);
  if (!Values)
    return Values.takeError();
  if (Shape[0] != Features || !Shape[1])
    return bad("tensor 'normalise.boundaries' needs a row per feature");
  for (uint64_t Row = 0; Row < Features; ++Row)
    if (!llvm::is_sorted(ArrayRef(*Values).slice(Row * Shape[1], Shape[1])))
      return bad("tensor 'normalise.boundaries' is not ascending");
  auto Layers = readLayers(Reader, 3 * Features);
  if (!Layers)
    return Layers.takeError();
  return std::make_unique<MLPPolicy>(
      MLPPolicy::QuantileTransform{unsigned(Shape[1]), std::move(*Values)},
      std::move(*Layers));
}

static Expected<std::unique_ptr<Policy>> readTrees(TensorReader &Reader,
                                                   uint64_t Features) {
  std::vector<uint64_t> Shape;
  uint64_t Trees = 0, NodeCount = 0;
  auto Ints = [&](StringRef Name, uint64_t &Count) {
    auto Values = Reader.take<int32_t>("tree." + Name, DType::I32, 1, Shape);
    if (Values && !Count)
      Count = Shape[0];
    if (Values && Shape[0] != Count)
      Values = bad("the trees' tensors differ in length");
    return Values;
  };
  auto Reals = [&](StringRef Name) {
    auto Values = Reader.take<double>("tree." + Name, DType::F64, 1, Shape);
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

  std::vector<TreesPolicy::Node> Nodes(NodeCount);
  for (size_t I = 0; I < NodeCount; ++I) {
    int64_t F = (*Feature)[I], L = (*Left)[I], R = (*Right)[I];
    if (F == -1) { // A leaf is its own child.
      if (L != 0 || R != 0)
        return bad("a tree's leaf has children");
      Nodes[I] = {std::numeric_limits<double>::infinity(), 0, uint32_t(I),
                  uint32_t(I)};
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
  }
  // Children come after their parents, so one backward pass gives all heights.
  std::vector<unsigned> Heights(NodeCount, 0);
  for (size_t I = NodeCount; I-- > 0;)
    if (Nodes[I].Left != I) {
      Heights[I] = 1 + std::max(Heights[Nodes[I].Left], Heights[Nodes[I].Right]);
      if (Heights[I] > MaxHeight)
        return bad("a tree is more than 512 nodes deep");
    }
  std::vector<uint32_t> Roots;
  for (int32_t R : *Root) {
    if (R < 0 || uint64_t(R) >= NodeCount)
      return bad("a tree's root lies outside the nodes");
    Roots.push_back(R);
  }
  return std::make_unique<TreesPolicy>(std::move(Nodes), std::move(*Value),
                                       std::move(Roots), Heights);
}

static Expected<std::vector<std::pair<double, double>>>
readRange(TensorReader &Reader, Answers Meaning, uint64_t Features) {
  std::vector<std::pair<double, double>> Range;
  if (!Reader.has("range"))
    return Range;
  // A decision has no default to fall back on.
  if (Meaning != Answers::Deviation)
    return bad("tensor 'range' needs a policy that answers with deviations");
  std::vector<uint64_t> Shape;
  auto Values = Reader.take<double>("range", DType::F64, 2, Shape);
  if (!Values)
    return Values.takeError();
  if (Shape[0] != Features || Shape[1] != 2)
    return bad("tensor 'range' needs a low and a high value per feature");
  for (uint64_t I = 0; I < Features; ++I) {
    Range.emplace_back((*Values)[2 * I], (*Values)[2 * I + 1]);
    if (Range.back().first > Range.back().second)
      return bad("tensor 'range' has a low value above the high one");
  }
  return Range;
}

static Expected<std::vector<std::string>> readFeatures(const json::Array *List) {
  if (!List || List->empty() || List->size() > MaxFeatures)
    return bad("'features' is not a list of 1 to 1,024 names");
  std::vector<std::string> Names;
  StringSet<> Seen;
  for (const json::Value &V : *List) {
    std::optional<StringRef> Name = V.getAsString();
    if (!Name || Name->empty() || !Seen.insert(*Name).second)
      return bad("'features' holds an empty name, a duplicate or no name");
    Names.push_back(Name->str());
  }
  return Names;
}

Expected<LoadedPolicy> parsePolicy(StringRef File) {
  Expected<SafeTensors> Tensors = readSafeTensors(File);
  if (!Tensors)
    return Tensors.takeError();
  auto Text = Tensors->Metadata.find("nestor");
  if (Text == Tensors->Metadata.end())
    return bad("the file has no 'nestor' metadata: not a policy");
  Expected<json::Value> Meta = parseUntrustedJSON(Text->second);
  if (!Meta)
    return bad("the 'nestor' metadata is not JSON: " +
               toString(Meta.takeError()));
  const json::Object *O = Meta->getAsObject();
  if (!O)
    return bad("the 'nestor' metadata is not an object");

  std::optional<int64_t> Version = O->getInteger("version");
  if (!Version || *Version < 1)
    return bad("the policy has no version");
  if (*Version > FormatVersion)
    return bad("the policy has version " + Twine(*Version) +
               ", newer than this plugin's " + Twine(FormatVersion));
  LoadedPolicy Result;
  Result.Problem = O->getString("problem").value_or("").str();
  if (Result.Problem != "inlining-size")
    return bad("the policy answers the problem '" + Result.Problem +
               "', not 'inlining-size'");
  StringRef Meaning = O->getString("answers").value_or("");
  if (Meaning != "decision" && Meaning != "deviation")
    return bad("'answers' is neither 'decision' nor 'deviation'");
  Result.Meaning =
      Meaning == "decision" ? Answers::Decision : Answers::Deviation;
  auto Features = readFeatures(O->getArray("features"));
  if (!Features)
    return Features.takeError();
  Result.Features = std::move(*Features);

  TensorReader Reader(*Tensors);
  StringRef Kind = O->getString("kind").value_or("");
  StringRef Transform = O->getString("transform").value_or("");
  Expected<std::unique_ptr<Policy>> Evaluator = nullptr;
  if (Kind == "mlp")
    Evaluator = readMLP(Reader, Transform, Result.Features.size());
  else if (Kind == "trees" && Transform == "none")
    Evaluator = readTrees(Reader, Result.Features.size());
  else
    Evaluator = bad("unknown kind '" + Kind + "' with transform '" + Transform +
                    "'");
  if (!Evaluator)
    return Evaluator.takeError();
  auto Range = readRange(Reader, Result.Meaning, Result.Features.size());
  if (!Range)
    return Range.takeError();
  Result.Range = std::move(*Range);
  if (Error E = Reader.checkAllTaken())
    return E;
  Result.Evaluator = std::move(*Evaluator);
  return Result;
}

Expected<LoadedPolicy> loadPolicy(StringRef Path) {
  auto Buffer = readPlainFile(Path);
  if (!Buffer)
    return Buffer.takeError();
  return parsePolicy((*Buffer)->getBuffer());
}

} // namespace nestor
