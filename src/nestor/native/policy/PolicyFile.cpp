//===- PolicyFile.cpp - Loads a policy file -------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "PolicyFile.h"
#include "Embedded.h"
#include "EvaluatorFile.h"
#include "PlainFile.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

using namespace llvm;

namespace nestor {

constexpr int64_t FormatVersion = 1;
constexpr size_t MaxFeatures = size_t(1) << TreesPolicy::Node::FeatureBits;
constexpr size_t MaxProblem = 64;

static Error bad(const Twine &Why) { return createStringError(Why); }

/// Whether \p Name is words of a-z and 0-9 with single hyphens between them.
static bool isProblemName(StringRef Name) {
  if (Name.size() > MaxProblem)
    return false;
  for (StringRef Word : llvm::split(Name, '-'))
    if (Word.empty() || !llvm::all_of(Word, [](char C) {
          return isDigit(C) || (C >= 'a' && C <= 'z');
        }))
      return false;
  return true;
}

static Expected<std::vector<std::pair<double, double>>>
readRange(TensorReader &Reader, const LoadedPolicy &Policy) {
  const uint64_t Features = Policy.Features.size();
  std::vector<std::pair<double, double>> Range;
  if (!Reader.has("range"))
    return Range;
  // Under this rule a decision is taken without the default's answer.
  if (Policy.ActionRule == Rule::Threshold && Policy.Meaning != Answers::Deviation)
    return bad("tensor 'range' needs a policy that answers with deviations, or "
               "another rule than 'threshold'");
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

static Expected<std::vector<std::string>>
readNames(const json::Array *List, StringRef Field, size_t Least) {
  if (!List || List->size() < Least || List->size() > MaxFeatures)
    return bad("'" + Field + "' is not a list of " + Twine(Least) +
               " to 1,024 names");
  std::vector<std::string> Names;
  StringSet<> Seen;
  for (const json::Value &V : *List) {
    std::optional<StringRef> Name = V.getAsString();
    if (!Name || Name->empty() || !Seen.insert(*Name).second)
      return bad("'" + Field +
                 "' holds an empty name, a duplicate or no name");
    Names.push_back(Name->str());
  }
  return Names;
}

/// Reads the fields that files of the rule 'threshold' do not need to have.
static Error readRule(const json::Object &O, LoadedPolicy &Result) {
  if (const json::Value *Field = O.get("rule")) {
    std::optional<Rule> Named = ruleNamed(Field->getAsString().value_or(""));
    if (!Named)
      return bad("'rule' is none of 'threshold', 'pick' and 'value'");
    Result.ActionRule = *Named;
  }
  if (Result.ActionRule != Rule::Threshold &&
      Result.Meaning == Answers::Deviation)
    return bad("the rule '" + nameOf(Result.ActionRule) +
               "' needs a policy that answers with decisions");
  const json::Value *Field = O.get("candidate_features");
  if (!Field)
    return Error::success();
  auto Names = readNames(Field->getAsArray(), "candidate_features", 0);
  if (!Names)
    return Names.takeError();
  for (const std::string &Name : *Names)
    if (!llvm::is_contained(Result.Features, Name))
      return bad("'candidate_features' names '" + Name +
                 "', which is none of the features");
  if (!Names->empty() && Result.ActionRule != Rule::Pick)
    return bad("'candidate_features' needs the rule 'pick'");
  Result.CandidateFeatures = std::move(*Names);
  return Error::success();
}

static Error readEvaluators(TensorReader &Reader, const json::Object &O,
                            LoadedPolicy &Result) {
  const StringRef Kind = O.getString("kind").value_or("");
  const StringRef Transform = O.getString("transform").value_or("");
  if (Kind == "portfolio") {
    if (Result.ActionRule == Rule::Threshold)
      return bad("a portfolio cannot have the rule 'threshold'");
    auto Members = readPortfolio(Reader, Transform, Result.Features.size());
    if (!Members)
      return Members.takeError();
    Result.Members = std::move(*Members);
    return Error::success();
  }
  auto Evaluator = readEvaluator(Reader, Kind, Transform, Result.Features.size());
  if (!Evaluator)
    return Evaluator.takeError();
  Result.Evaluator = std::move(*Evaluator);
  return Error::success();
}

Expected<LoadedPolicy> parsePolicy(StringRef File, IsNeeded Needed) {
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
  if (!isProblemName(Result.Problem))
    return bad("'problem' is not words of a-z and 0-9 with hyphens between them");
  if (Needed && !Needed(Result.Problem))
    return Result;
  StringRef Meaning = O->getString("answers").value_or("");
  if (Meaning != "decision" && Meaning != "deviation")
    return bad("'answers' is neither 'decision' nor 'deviation'");
  Result.Meaning =
      Meaning == "decision" ? Answers::Decision : Answers::Deviation;
  auto Features = readNames(O->getArray("features"), "features", 1);
  if (!Features)
    return Features.takeError();
  Result.Features = std::move(*Features);
  if (Error E = readRule(*O, Result))
    return E;

  TensorReader Reader(*Tensors);
  if (Error E = readEvaluators(Reader, *O, Result))
    return E;
  auto Range = readRange(Reader, Result);
  if (!Range)
    return Range.takeError();
  Result.Range = std::move(*Range);
  if (Error E = Reader.checkAllTaken())
    return E;
  return Result;
}

Expected<LoadedPolicy> loadPolicy(StringRef Path, IsNeeded Needed) {
  auto Buffer = readPlainFile(Path);
  if (!Buffer)
    return Buffer.takeError();
  return parsePolicy((*Buffer)->getBuffer(), Needed);
}

static Expected<LoadedPolicy> loadEmbedded(ArrayRef<StringRef> Problems,
                                           IsNeeded Needed) {
  for (StringRef Problem : Problems)
    if (StringRef File = embeddedPolicy(Problem); !File.empty())
      return parsePolicy(File, Needed);
  return bad("this plugin carries no policy for " + llvm::join(Problems, " or "));
}

Expected<LoadedPolicy> loadPolicyFor(ArrayRef<StringRef> Problems, Rule Own,
                                     StringRef What, StringRef Path, IsNeeded Needed) {
  Expected<LoadedPolicy> Policy = Path == EmbeddedName ? loadEmbedded(Problems, Needed)
                                                       : loadPolicy(Path, Needed);
  if (!Policy)
    return Policy.takeError();
  if (!llvm::is_contained(Problems, Policy->Problem))
    return createStringError("it is for " + Policy->Problem + ", not for " +
                             llvm::join(Problems, " or "));
  if (Policy->ActionRule != Own)
    return createStringError("its rule is " + nameOf(Policy->ActionRule) + ", and " +
                             What + " needs " + nameOf(Own));
  return Policy;
}

} // namespace nestor
