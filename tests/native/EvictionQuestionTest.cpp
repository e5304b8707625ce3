//===- EvictionQuestionTest.cpp - What is asked, and what policies answer -===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "plugin/regalloc/EvictionQuestion.h"
#include "FileBuilder.h"
#include "RegallocPolicyFile.h"
#include "plugin/regalloc/EvictionPolicy.h"
#include "llvm/IR/LLVMContext.h"
#include <cmath>
#include <doctest/doctest.h>
#include <limits>
#include <set>

using namespace llvm;
using namespace nestor;

constexpr float Inf = std::numeric_limits<float>::infinity();

namespace {
/// Tensors that a test fills.
class Values final : public MLModelRunner {
public:
  Values(LLVMContext &C, const std::vector<TensorSpec> &Specs)
      : MLModelRunner(C, Kind::NoOp, Specs.size()) {
    for (size_t I = 0; I < Specs.size(); ++I)
      setUpBufferForTensor(I, Specs[I], nullptr);
  }

private:
  void *evaluateUntyped() override { return nullptr; }
};

enum TensorIndex { Mask, Size, Hints, Weight, Progress };

std::vector<TensorSpec> usualSpecs() {
  return {TensorSpec::createSpec<int64_t>("mask", {1, 33}),
          TensorSpec::createSpec<float>("liverange_size", {1, 33}),
          TensorSpec::createSpec<int64_t>("is_hint", {1, 33}),
          TensorSpec::createSpec<float>("use_def_density", {1, 33}),
          TensorSpec::createSpec<float>("progress", {1})};
}

/// A question with the candidates 2, 5 and 32, of weights 0.5, 0.125 and 1.
struct Asked {
  LLVMContext Context;
  EvictionTensors Tensors = cantFail(EvictionTensors::create(usualSpecs()));
  Values V{Context, Tensors.specs()};

  Asked() {
    for (unsigned Candidate : {2u, 5u, OwnCandidate})
      allow(Candidate);
    weight(2) = 0.5;
    weight(5) = 0.125;
    weight(OwnCandidate) = 1;
    *V.getTensor<float>(Progress) = 0.75;
  }
  void allow(unsigned Candidate) { V.getTensor<int64_t>(Mask)[Candidate] = 1; }
  float &weight(unsigned Candidate) { return V.getTensor<float>(Weight)[Candidate]; }
  float &size(unsigned Candidate) { return V.getTensor<float>(Size)[Candidate]; }
  EvictionQuestion question(int Default = 5) { return {Tensors, V, Default}; }
  double read(StringRef Name, unsigned Candidate, int Default = 5) {
    auto Features = cantFail(Tensors.bind({Name.str()}));
    return question(Default).read(Features[0], Candidate);
  }
};
} // namespace

TEST_CASE("tensors that this code does not understand are refused") {
  CHECK(bool(EvictionTensors::create(usualSpecs())));
  auto Refused = [](std::vector<TensorSpec> Specs, StringRef Why) {
    const std::string Error = errorOf(EvictionTensors::create(Specs));
    CAPTURE(Error);
    CHECK(StringRef(Error).contains(Why));
  };
  Refused({}, "'mask'");
  std::vector<TensorSpec> Specs = usualSpecs();
  Specs.erase(Specs.begin() + Mask);
  Refused(Specs, "'mask'");
  Specs = usualSpecs();
  Specs[Mask] = TensorSpec::createSpec<float>("mask", {1, 33});
  Refused(Specs, "'mask'");
  Specs = usualSpecs();
  Specs.erase(Specs.begin() + Weight);
  Refused(Specs, "'use_def_density'");
  Specs = usualSpecs();
  Specs[Size] = TensorSpec::createSpec<float>("liverange_size", {1, 34});
  Refused(Specs, "liverange_size has 34");
  Specs = usualSpecs();
  Specs[Size] = TensorSpec::createSpec<double>("liverange_size", {1, 33});
  Refused(Specs, "liverange_size is neither");
}

TEST_CASE("features are found by their names") {
  Asked A;
  CHECK(bool(A.Tensors.bind({"is_hint", "progress", "position", "is_own",
                             "weight_to_own", "weight_to_least", "candidates",
                             "eviction_default", "is_hint_of_default"})));
  const std::string Error = errorOf(
      A.Tensors.bind({"is_hint", "mask", "loop_depth", "loop_depth_of_default"}));
  CHECK(Error == "it needs features that this compiler does not offer: mask, "
                 "loop_depth, loop_depth_of_default");
}

TEST_CASE("only candidates that the mask allows may be chosen, in their order") {
  Asked A;
  CHECK(A.question().allowed() == ArrayRef<unsigned>{2, 5, 32});
  CHECK(A.question().allows(2));
  CHECK_FALSE(A.question().allows(3));
  CHECK_FALSE(A.question().allows(-1));
  CHECK_FALSE(A.question().allows(33));
}

TEST_CASE("features have the values that the tensors give") {
  Asked A;
  A.size(2) = 40;
  A.size(5) = 80;
  A.V.getTensor<int64_t>(Hints)[2] = 1;
  CHECK(A.read("liverange_size", 2) == 40);
  CHECK(A.read("liverange_size_of_default", 2) == 80);
  CHECK(A.read("is_hint", 2) == 1);
  CHECK(A.read("is_hint", 5) == 0);
  CHECK(A.read("progress", 2) == 0.75);
  CHECK(A.read("progress", 32) == 0.75);
  CHECK(A.read("position", 5) == 5);
  CHECK(A.read("position_of_default", 2) == 5);
  CHECK(A.read("is_own", 32) == 1);
  CHECK(A.read("is_own", 2) == 0);
  CHECK(A.read("candidates", 2) == 3);
  CHECK(A.read("eviction_default", 5) == 1);
  CHECK(A.read("eviction_default", 2) == 0);
  CHECK(A.read("weight_to_own", 2) == -1);
  CHECK(A.read("weight_to_own", 5) == -3);
  CHECK(A.read("weight_to_least", 2) == 2); // The least of the others is 0.125.
  CHECK(A.read("weight_to_least", 32) == 3);
}

TEST_CASE("logarithms of ratios are linear between powers of two, and cut") {
  Asked A;
  A.weight(2) = 0.75;
  CHECK(A.read("weight_to_own", 2) == -0.5); // log2(0.75) is -0.415.
  A.weight(2) = 0;
  CHECK(A.read("weight_to_own", 2) == -32);
  A.weight(2) = A.weight(OwnCandidate) = 0;
  CHECK(A.read("weight_to_own", 2) == 0);
  A.weight(2) = Inf;
  CHECK(A.read("weight_to_own", 2) == 32);
}

TEST_CASE("whatever the compiler sends, features are finite") {
  Asked A;
  // LLVM divides infinity by infinity for ranges that cannot be spilled.
  A.size(2) = std::nanf("");
  A.weight(2) = std::nanf("");
  A.size(5) = Inf;
  A.size(OwnCandidate) = -Inf;
  CHECK(A.read("liverange_size", 2) == 1);
  CHECK(A.read("weight_to_own", 2) == 0); // 1 to 1.
  CHECK(A.read("liverange_size", 5) == 1e30);
  CHECK(A.read("liverange_size", 32) == -1e30);
}

/// A linear policy about evictions: a weight for each feature.
static PolicyOnDisk evictionPolicy(std::vector<std::string> Features,
                                   std::vector<float> Weights) {
  return PolicyOnDisk(linearPolicy("regalloc-eviction", "pick", Features, Weights));
}

/// The only policy in \p File.
static EvictionPolicy loadOne(const PolicyOnDisk &File, const EvictionTensors &Offered) {
  auto Members = cantFail(EvictionPolicy::load(File.path(), Offered));
  REQUIRE(Members.size() == 1);
  return std::move(Members.front());
}

TEST_CASE("a policy takes the candidate of the greatest logit that may be chosen") {
  Asked A;
  A.weight(7) = 30; // Not allowed.
  auto Answer = [&](std::vector<std::string> Features, std::vector<float> Weights) {
    const PolicyOnDisk File = evictionPolicy(std::move(Features), std::move(Weights));
    auto Policy = loadOne(File, A.Tensors);
    return Policy.answer(A.question(), {}).Candidate;
  };
  CHECK(Answer({"use_def_density"}, {1}) == OwnCandidate);
  CHECK(Answer({"use_def_density"}, {-1}) == 5);
  CHECK(Answer({"position"}, {-1}) == 2);
  CHECK(Answer({"position", "is_own"}, {1, -300}) == 5);
  CHECK(Answer({"progress"}, {1}) == 2); // The first of equals.
}

TEST_CASE("members of a portfolio answer as the single policies do") {
  Asked A;
  const std::vector<std::string> Features = {"use_def_density", "position"};
  const std::vector<std::vector<float>> Rows = {{1, 0}, {-1, 0}, {0, -1}};
  const unsigned Expected[] = {OwnCandidate, 5, 2};
  const PolicyOnDisk Whole(linearPortfolio("regalloc-eviction", "pick", Features, Rows));
  auto Members = cantFail(EvictionPolicy::load(Whole.path(), A.Tensors));
  REQUIRE(Members.size() == Rows.size());
  for (size_t K = 0; K < Rows.size(); ++K) {
    auto Policy = loadOne(evictionPolicy(Features, Rows[K]), A.Tensors);
    for (const Draw &How : {Draw{}, Draw{0.1, 5}, Draw{0.9, 5}}) {
      const EvictionAnswer One = Policy.answer(A.question(), How);
      const EvictionAnswer Member = Members[K].answer(A.question(), How);
      CHECK(Member.Candidate == One.Candidate);
      CHECK(Member.Logit == One.Logit);
      CHECK(Member.LogProbability == One.LogProbability);
    }
    CHECK(Members[K].answer(A.question(), {}).Candidate == Expected[K]);
  }
}

TEST_CASE("sampling reaches every candidate that may be chosen, and no other") {
  Asked A;
  const PolicyOnDisk File = evictionPolicy({"use_def_density"}, {1});
  auto Policy = loadOne(File, A.Tensors);
  std::set<unsigned> Seen;
  for (double Uniform = 0; Uniform < 1; Uniform += 1.0 / 64)
    Seen.insert(Policy.answer(A.question(), {Uniform, 1e6}).Candidate);
  CHECK(Seen == std::set<unsigned>{2, 5, 32});
}

TEST_CASE("logits that overflow still choose what may be chosen") {
  Asked A;
  const float Huge = std::numeric_limits<float>::max();
  const std::vector<std::vector<float>> Weights = {
      {Huge, Huge}, {-Huge, -Huge}, {Huge, -Huge}, {-Huge, Huge}};
  for (const std::vector<float> &W : Weights) {
    const PolicyOnDisk File = evictionPolicy({"position", "candidates"}, W);
    auto Policy = loadOne(File, A.Tensors);
    for (double Uniform : {0.0, 0.5, 0.999})
      CHECK(A.question().allows(
          int(Policy.answer(A.question(), {Uniform, 1}).Candidate)));
    CHECK(A.question().allows(int(Policy.answer(A.question(), {}).Candidate)));
  }
}

TEST_CASE("a policy that cannot decide evictions says why") {
  Asked A;
  auto Refused = [&](FileBuilder B, StringRef Why) {
    const PolicyOnDisk File(std::move(B));
    const std::string Error = errorOf(EvictionPolicy::load(File.path(), A.Tensors));
    CAPTURE(Error);
    CHECK(StringRef(Error).contains(Why));
  };
  Refused(linearPolicy("inlining-size", "threshold", {"position"}, {1}),
          "it is for inlining-size, not for regalloc-eviction");
  Refused(linearPolicy("regalloc-priority", "value", {"position"}, {1}),
          "it is for regalloc-priority");
  Refused(linearPolicy("regalloc-eviction", "value", {"position"}, {1}),
          "its rule is value, and eviction needs pick");
  Refused(linearPolicy("regalloc-eviction", "pick", {"loop_depth"}, {1}),
          "does not offer: loop_depth");
  Refused(linearPortfolio("regalloc-eviction", "value", {"position"}, {{1}, {2}}),
          "its rule is value, and eviction needs pick");
  Refused(linearPortfolio("regalloc-eviction", "pick", {"loop_depth"}, {{1}, {2}}),
          "does not offer: loop_depth");
  CHECK(errorOf(EvictionPolicy::load("/nonexistent", A.Tensors)) != "");
}
