//===- BoundPolicy.cpp - A policy and where its features come from --------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "BoundPolicy.h"
#include "policy/Embedded.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/IR/Module.h"
#include <limits>
#include <map>
#include <set>
#include <tuple>

using namespace llvm;

namespace nestor {

constexpr int DefaultAsFeature = -1;

/// Where each of the policy's features comes from, or which ones the compiler
/// does not have. A policy may read fewer features than there are.
static Expected<std::vector<int>>
bindFeatures(ArrayRef<std::string> Wanted, ArrayRef<TensorSpec> Offered) {
  std::vector<int> Inputs;
  std::string Missing;
  for (const std::string &Name : Wanted) {
    const auto *It = llvm::find_if(
        Offered, [&](const TensorSpec &T) { return T.name() == Name; });
    if (Name == "inlining_default")
      Inputs.push_back(DefaultAsFeature);
    else if (It != Offered.end() && It->getElementCount() == 1 &&
             It->isElementType<int64_t>())
      Inputs.push_back(It - Offered.begin());
    else
      Missing += (Missing.empty() ? "" : ", ") + Name;
  }
  if (!Missing.empty())
    return createStringError("it needs features that this compiler does not "
                             "offer: " +
                             Missing);
  return Inputs;
}

static const InliningProblem &problemOf(const LoadedPolicy &File) {
  return *llvm::find_if(inliningProblems(), [&](const InliningProblem &P) {
    return P.Name == File.Problem;
  });
}

Expected<BoundPolicy> BoundPolicy::create(LoadedPolicy File,
                                          ArrayRef<TensorSpec> Offered) {
  auto Inputs = bindFeatures(File.Features, Offered);
  if (!Inputs)
    return Inputs.takeError();
  return BoundPolicy(std::move(File), std::move(*Inputs));
}

BoundPolicy::BoundPolicy(LoadedPolicy Loaded, std::vector<int> Inputs)
    : File(std::move(Loaded)), Problem(&problemOf(File)), Inputs(std::move(Inputs)),
      X(this->Inputs.size()) {
  orderInputs();
}

std::vector<size_t> BoundPolicy::tensors() const {
  std::vector<size_t> Tensors;
  for (int Input : Inputs)
    if (Input != DefaultAsFeature)
      Tensors.push_back(Input);
  return Tensors;
}

bool BoundPolicy::readsDefault() const {
  return deviates() || llvm::is_contained(Inputs, DefaultAsFeature);
}

void BoundPolicy::limitCopies(const Module &M) {
  if (deviates())
    Copyable = M.getInstructionCount();
}

/// Makes Steps.
void BoundPolicy::orderInputs() {
  std::map<Price, Step> ByPrice;
  for (size_t I = 0; I < Inputs.size(); ++I)
    ByPrice[Inputs[I] == DefaultAsFeature ? Price::Glance
                                          : SiteFeatures::priceOf(Inputs[I])]
        .Features.push_back(I);
  for (auto &[Costs, S] : ByPrice) {
    S.Costs = Costs;
    Steps.push_back(std::move(S));
  }
}

/// Whether the action hangs on what is not read yet.
bool BoundPolicy::hangs() const {
  return !File.Evaluator->neverPositive(Lowest, Highest) &&
         !File.Evaluator->alwaysPositive(Lowest, Highest);
}

// What is not read yet is in the range, or that would be the reason.
bool BoundPolicy::read(const Decision &D, function_ref<double(size_t)> Read,
                       bool Settles, function_ref<bool(Price)> MayTry) {
  constexpr double Most = std::numeric_limits<double>::max();
  Lowest.assign(X.size(), -Most);
  Highest.assign(X.size(), Most);
  for (size_t I = 0; I < File.Range.size(); ++I)
    std::tie(Lowest[I], Highest[I]) = File.Range[I];
  for (Step &S : Steps) {
    // Whether something is tried must not depend on who asks.
    const bool IsTrial = SiteFeatures::isTrial(S.Costs);
    const bool Skips = IsTrial && !(hangs() && MayTry(S.Costs));
    for (size_t I : S.Features) {
      X[I] = Skips ? 0
             : Inputs[I] == DefaultAsFeature ? double(D.Default)
                                             : Read(Inputs[I]);
      if (!Skips && !File.inRange(I, X[I]))
        return false;
      Lowest[I] = Highest[I] = X[I];
    }
    if (!IsTrial && Settles && &S != &Steps.back() &&
        S.settledBy(File.Evaluator->neverPositive(Lowest, Highest, S.most())))
      return false;
  }
  return true;
}

static std::vector<StringRef> problems() {
  std::vector<StringRef> Names;
  for (const InliningProblem &P : inliningProblems())
    Names.push_back(P.Name);
  return Names;
}

static Error because(StringRef Path, Error E) {
  return createStringError("cannot use the policy '" + Path +
                           "': " + toString(std::move(E)));
}

namespace {
class Loader {
public:
  Loader(const Module &M, ArrayRef<TensorSpec> Offered) : M(M), Offered(Offered) {}

  Error load(ArrayRef<StringRef> Problems, const std::string &Path) {
    auto File = loadPolicyFor(Problems, Rule::Threshold, "inlining", Path,
                              [&](StringRef Problem) { return isNeeded(Problem); });
    if (!File)
      return because(Path, File.takeError());
    const InliningProblem &Problem = problemOf(*File);
    const auto [Other, IsNew] = Seen.try_emplace(Problem.Name, Path);
    if (!IsNew)
      return createStringError("the policies '" + Other->second + "' and '" + Path +
                               "' are both for " + Problem.Name +
                               ": a compile takes one of them");
    if (!isNeeded(Problem.Name)) {
      Result.Elsewhere += (Result.Elsewhere.empty() ? "" : " or ") + Problem.Code.str();
      return Error::success();
    }
    auto Policy = BoundPolicy::create(std::move(*File), Offered);
    if (!Policy)
      return because(Path, Policy.takeError());
    Result.Acting.push_back(std::move(*Policy));
    return Error::success();
  }

  PoliciesOfModule take() {
    if (!Result.Acting.empty())
      Result.Elsewhere.clear();
    return std::move(Result);
  }

private:
  bool isNeeded(StringRef Problem) const {
    return llvm::any_of(inliningProblems(), [&](const InliningProblem &P) {
      return P.Name == Problem && llvm::any_of(M, P.ActsIn);
    });
  }

  const Module &M;
  ArrayRef<TensorSpec> Offered;
  PoliciesOfModule Result;
  std::map<StringRef, std::string> Seen; ///< Paths by problem.
};
} // namespace

Expected<PoliciesOfModule> loadPolicies(const Module &M, const InliningSettings &S,
                                        ArrayRef<TensorSpec> Offered) {
  Loader Loader(M, Offered);
  for (const std::string &Path : S.Policies) {
    if (Path == "default")
      continue;
    if (Path != EmbeddedName) {
      if (Error E = Loader.load(problems(), Path))
        return std::move(E);
      continue;
    }
    for (StringRef Problem : problems())
      if (!embeddedPolicy(Problem).empty())
        if (Error E = Loader.load(Problem, Path))
          return std::move(E);
  }
  return Loader.take();
}

Expected<std::vector<size_t>> readBy(ArrayRef<std::string> Paths,
                                     ArrayRef<TensorSpec> Offered) {
  std::set<size_t> Tensors;
  for (const std::string &Path : Paths) {
    auto File = loadPolicyFor(problems(), Rule::Threshold, "inlining", Path);
    if (!File)
      return because(Path, File.takeError());
    auto Policy = BoundPolicy::create(std::move(*File), Offered);
    if (!Policy)
      return because(Path, Policy.takeError());
    const std::vector<size_t> Own = Policy->tensors();
    Tensors.insert(Own.begin(), Own.end());
  }
  return std::vector<size_t>(Tensors.begin(), Tensors.end());
}

} // namespace nestor
