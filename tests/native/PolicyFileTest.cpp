//===- PolicyFileTest.cpp - What must load and what must not --------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "PolicyChecks.h"
#include <cmath>
#include <limits>
#include <random>

using namespace llvm;
using namespace nestor;

/// Parses a copy on the heap, so that a read past the end is seen, and asks
/// whatever was accepted.
static bool survives(StringRef File) {
  std::vector<char> Copy(File.begin(), File.end());
  Expected<LoadedPolicy> P = parsePolicy(StringRef(Copy.data(), Copy.size()));
  if (!P) {
    CHECK(toString(P.takeError()) != "");
    return false;
  }
  Copy.assign(Copy.size(), '\xff'); // A loaded policy needs its file no more.
  for (double X : {0.0, 1.0, -1.0, 10.0, 9.2e18, -9.2e18})
    for (Policy *Evaluator : P->evaluators())
      Evaluator->logit(std::vector<double>(P->Features.size(), X));
  return true;
}

TEST_CASE("sound files load") {
  for (const FileBuilder &B :
       {logPolicy(), quantilePolicy(), scorePolicy(), treesPolicy(), rangedPolicy(),
        portfolio()})
    CHECK(parseError(B) == "");
  FileBuilder B = logPolicy();
  B.Meta["answers"] = "deviation";
  B.Meta["provenance"] = json::Object{{"seed", 1}};
  B.Meta["something new"] = json::Array{1, nullptr};
  Expected<LoadedPolicy> P = parsePolicy(B.build());
  REQUIRE(bool(P));
  CHECK(P->Meaning == Answers::Deviation);
  CHECK(P->Problem == "inlining-size");
  CHECK(P->Features == std::vector<std::string>{"a", "b"});
}

TEST_CASE("files of any problem and rule load") {
  FileBuilder B = logPolicy();
  B.Meta["problem"] = "regalloc-eviction";
  B.Meta["rule"] = "pick";
  B.Meta["candidate_features"] = json::Array{"b"};
  Expected<LoadedPolicy> P = parsePolicy(B.build());
  REQUIRE(bool(P));
  CHECK(P->Problem == "regalloc-eviction");
  CHECK(P->ActionRule == Rule::Pick);
  CHECK(P->CandidateFeatures == std::vector<std::string>{"b"});
  B.Meta["answers"] = "deviation";
  refused(B, "the rule 'pick' needs");
  Expected<LoadedPolicy> Plain = parsePolicy(logPolicy().build());
  REQUIRE(bool(Plain));
  CHECK(Plain->ActionRule == Rule::Threshold);
  CHECK(Plain->CandidateFeatures.empty());
}

TEST_CASE("a range says which values a policy knows") {
  Expected<LoadedPolicy> Unbounded = parsePolicy(treesPolicy().build());
  REQUIRE(bool(Unbounded));
  CHECK(Unbounded->inRange(1, 1e300));
  Expected<LoadedPolicy> P = parsePolicy(rangedPolicy().build());
  REQUIRE(bool(P));
  for (double X : {-1.0, 0.0, 2.0})
    CHECK(P->inRange(0, X));
  for (double X : {-1.5, 2.5, 1e300})
    CHECK_FALSE(P->inRange(0, X));
  CHECK(P->inRange(1, 5));
  CHECK_FALSE(P->inRange(1, 4));
  CHECK_FALSE(P->inRange(1, 6));
}

TEST_CASE("ranges that are wrong") {
  FileBuilder B = treesPolicy();
  refused(FileBuilder(B).range({0, 1, 0, 1}), "deviations");
  B.Meta["answers"] = "deviation";
  refused(FileBuilder(B).range({0, 1}), "per feature");
  refused(FileBuilder(B).range({0, 1, 0, 1, 0, 1}), "per feature");
  refused(FileBuilder(B).range({0, 1, 2, 1}), "above");
  const double Inf = std::numeric_limits<double>::infinity();
  refused(FileBuilder(B).range({0, Inf, 0, 1}), "NaN or infinity");
  refused(FileBuilder(B).range({0, std::nan(""), 0, 1}), "NaN or infinity");
  refused(FileBuilder(B).f64("range", {0, 1, 0, 1}), "rank");
  refused(FileBuilder(B).f32("range", {2, 2}, {0, 1, 0, 1}), "type");
}

TEST_CASE("no prefix loads") {
  for (const FileBuilder &B :
       {logPolicy(), quantilePolicy(), scorePolicy(), treesPolicy(), rangedPolicy(),
        portfolio()}) {
    const std::string File = B.build();
    for (size_t Size = 0; Size < File.size(); ++Size)
      CHECK_FALSE(survives(StringRef(File).take_front(Size)));
  }
}

TEST_CASE("nothing that random damage makes of a file does harm") {
  std::mt19937_64 Random(20260101); // NOLINT: the same damage every time.
  unsigned Accepted = 0, Refused = 0;
  for (const FileBuilder &B :
       {logPolicy(), quantilePolicy(), scorePolicy(), treesPolicy(), rangedPolicy(),
        portfolio()}) {
    const std::string File = B.build();
    const size_t DataBegin = File.size() - B.data().size();
    for (unsigned Round = 0; Round < 3000; ++Round) {
      std::string Damaged = File;
      for (unsigned N = 1 + Random() % 4; N; --N) {
        // Every other round spares the header, so that the damage gets further.
        size_t First = Round % 2 ? DataBegin : 0;
        size_t At = First + Random() % (Damaged.size() - First);
        switch (Random() % 4) {
        case 0:
          Damaged[At] = char(Random());
          break;
        case 1:
          Damaged[At] = "\"{}[]:,0-9\x00\xff\x7f\x80"[Random() % 14];
          break;
        default:
          Damaged[At] ^= char(1 << (Random() % 8));
        }
      }
      if (Random() % 16 == 0)
        Damaged.erase(Random() % Damaged.size(), 1 + Random() % 9);
      if (Damaged.size() < DataBegin)
        Damaged.resize(DataBegin);
      ++(survives(Damaged) ? Accepted : Refused);
    }
  }
  // Both happen, or the damage tests nothing.
  CHECK(Accepted > 500);
  CHECK(Refused > 3000);
}

TEST_CASE("metadata that is wrong") {
  const std::tuple<StringRef, json::Value, StringRef> Wrong[] = {
      {"version", 2, "version 2"},
      {"version", 0, "version"},
      {"version", "1", "version"},
      {"version", 1.5, "version"},
      {"version", nullptr, "version"},
      {"version", std::numeric_limits<int64_t>::max(), "newer"},
      {"problem", 1, "problem"},
      {"problem", "", "problem"},
      {"problem", "Eviction", "problem"},
      {"problem", "a--b", "problem"},
      {"problem", "-a", "problem"},
      {"problem", "a\n", "problem"},
      {"problem", std::string(65, 'a'), "problem"},
      {"rule", "choose", "rule"},
      {"rule", 1, "rule"},
      {"candidate_features", "a", "candidate_features"},
      {"candidate_features", json::Array{"c"}, "none of the features"},
      {"candidate_features", json::Array{"a", "a"}, "duplicate"},
      {"candidate_features", json::Array{"a"}, "needs the rule 'pick'"},
      {"kind", "forest", "'forest'"},
      {"kind", "trees", "unknown kind 'trees' with transform 'log'"},
      {"kind", "portfolio", "cannot have the rule 'threshold'"},
      {"transform", "none", "transform"},
      {"transform", "quantile", "normalise.boundaries"},
      {"answers", "perhaps", "answers"},
      {"answers", json::Array{}, "answers"},
      {"features", "a", "features"},
      {"features", json::Array{}, "features"},
      {"features", json::Array{"a", "a"}, "duplicate"},
      {"features", json::Array{"a", ""}, "empty"},
      {"features", json::Array{"a", 1}, "features"},
      {"features", json::Array{"a"}, "per feature"},
      {"features", json::Array{"a", "b", "c"}, "per feature"},
  };
  for (const auto &[Key, Value, Why] : Wrong) {
    FileBuilder B = logPolicy();
    B.Meta[Key] = Value;
    refused(B, Why);
  }
  for (StringRef Key : {"version", "problem", "kind", "transform", "answers",
                        "features"}) {
    FileBuilder B = logPolicy();
    B.Meta.erase(Key);
    refused(B, Key);
  }
  json::Array Many;
  for (int I = 0; I < 1025; ++I)
    Many.push_back("f" + std::to_string(I));
  FileBuilder B = logPolicy();
  B.Meta["features"] = std::move(Many);
  refused(B, "1,024");
}

TEST_CASE("files that are no policies") {
  auto With = [](StringRef Meta) {
    return errorOf(parsePolicy(FileBuilder::assemble(
        FileBuilder::toText(json::Object{
            {"__metadata__", json::Object{{"nestor", Meta}}}}),
        "")));
  };
  CHECK(StringRef(errorOf(parsePolicy(FileBuilder::assemble("{}", ""))))
            .contains("not a policy"));
  CHECK(StringRef(With("{")).contains("not JSON"));
  CHECK(StringRef(With("[]")).contains("not an object"));
  CHECK(StringRef(With(std::string(100000, '['))).contains("too deeply"));
}

TEST_CASE("paths that are no files") {
  auto Load = [](StringRef Path) { return errorOf(loadPolicy(Path)); };
  CHECK(Load("/nonexistent/policy") != "");
  CHECK(StringRef(Load("/dev/zero")).contains("not a regular file"));
  CHECK(Load("/") != "");
}
