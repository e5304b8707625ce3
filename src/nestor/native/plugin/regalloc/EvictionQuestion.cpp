//===- EvictionQuestion.cpp - Which live range gives up its register ------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "EvictionQuestion.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringSwitch.h"
#include "policy/Policy.h"
#include <algorithm>
#include <cmath>

using namespace llvm;

namespace nestor {

constexpr double LargestLog = 32;   // Logarithms of ratios are cut here.
constexpr double LargestInput = 1e30;

Expected<EvictionTensors>
EvictionTensors::create(const std::vector<TensorSpec> &Specs) {
  EvictionTensors T;
  T.Specs = Specs;
  bool HasMask = false, HasWeight = false;
  for (size_t I = 0; I < Specs.size(); ++I) {
    const TensorSpec &Spec = Specs[I];
    const size_t Elements = Spec.getElementCount();
    if (Elements != 1 && Elements != MaxCandidates)
      return createStringError("the tensor " + Spec.name() + " has " +
                               Twine(Elements) + " elements");
    if (!Spec.isElementType<int64_t>() && !Spec.isElementType<float>())
      return createStringError("the tensor " + Spec.name() +
                               " is neither int64 nor float");
    if (Spec.name() == "mask" && Elements == MaxCandidates &&
        Spec.isElementType<int64_t>()) {
      HasMask = true;
      T.Mask = I;
    }
    if (Spec.name() == "use_def_density" && Elements == MaxCandidates) {
      HasWeight = true;
      T.Weight = I;
    }
  }
  if (!HasMask || !HasWeight)
    return createStringError("there is no tensor 'mask' or 'use_def_density'");
  return T;
}

Expected<std::vector<EvictionFeature>>
EvictionTensors::bind(ArrayRef<std::string> Names) const {
  std::vector<EvictionFeature> Features;
  std::string Missing;
  for (const std::string &Whole : Names) {
    StringRef Name = Whole;
    EvictionFeature F;
    F.OfDefault = Name.consume_back("_of_default");
    F.From = StringSwitch<EvictionFeature::Source>(Name)
                 .Case("position", EvictionFeature::Position)
                 .Case("is_own", EvictionFeature::IsOwn)
                 .Case("weight_to_own", EvictionFeature::WeightToOwn)
                 .Case("weight_to_least", EvictionFeature::WeightToLeast)
                 .Case("candidates", EvictionFeature::Count)
                 .Case("eviction_default", EvictionFeature::IsDefault)
                 .Default(EvictionFeature::Tensor);
    if (F.From == EvictionFeature::Tensor) {
      const auto It = llvm::find_if(
          Specs, [&](const TensorSpec &T) { return T.name() == Name; });
      if (It == Specs.end() || Name == "mask")
        Missing += (Missing.empty() ? "" : ", ") + Whole;
      F.Index = size_t(It - Specs.begin());
    }
    Features.push_back(F);
  }
  if (!Missing.empty())
    return createStringError("it needs features that this compiler does not offer: " +
                             Missing);
  return Features;
}

EvictionQuestion::EvictionQuestion(const EvictionTensors &Tensors,
                                   const MLModelRunner &Values, int Default)
    : Tensors(Tensors), Values(Values), Default(Default) {
  const int64_t *Mask = Values.getTensor<int64_t>(Tensors.Mask);
  bool Any = false;
  for (unsigned I = 0; I < MaxCandidates; ++I) {
    if (!Mask[I])
      continue;
    Allowed.push_back(I);
    if (I == OwnCandidate)
      continue;
    Least = Any ? std::min(Least, weight(I)) : weight(I);
    Any = true;
  }
}

/// LLVM divides by the largest value of the question. Where that is infinite (a
/// live range that cannot be spilled), infinity over infinity arrives as "not a
/// number": it is 1, the largest value.
static double finite(double X) {
  if (std::isnan(X))
    return 1;
  return std::clamp(X, -LargestInput, LargestInput);
}

double EvictionQuestion::tensor(size_t Index, unsigned Candidate) const {
  const TensorSpec &Spec = Tensors.Specs[Index];
  const unsigned At = Spec.getElementCount() == 1 ? 0 : Candidate;
  return finite(Spec.isElementType<float>()
                    ? double(Values.getTensor<float>(Index)[At])
                    : double(Values.getTensor<int64_t>(Index)[At]));
}

/// log2(A / B), piecewise linear as squash() is: the same bits everywhere.
static double logRatio(double A, double B) {
  auto Log = [](double X) {
    int Exponent;
    const double Mantissa = std::frexp(std::max(X, 0x1p-32), &Exponent);
    return (Exponent - 1) + (2 * Mantissa - 1);
  };
  return std::clamp(Log(A) - Log(B), -LargestLog, LargestLog);
}

double EvictionQuestion::read(const EvictionFeature &F, unsigned Candidate) const {
  const unsigned At = F.OfDefault ? unsigned(Default) : Candidate;
  switch (F.From) {
  case EvictionFeature::Tensor:
    return tensor(F.Index, At);
  case EvictionFeature::Position:
    return At;
  case EvictionFeature::IsOwn:
    return At == OwnCandidate;
  case EvictionFeature::WeightToOwn:
    return logRatio(weight(At), weight(OwnCandidate));
  case EvictionFeature::WeightToLeast:
    return logRatio(weight(At), Least);
  case EvictionFeature::Count:
    return double(Allowed.size());
  case EvictionFeature::IsDefault:
    return int(At) == Default;
  }
  return 0;
}

} // namespace nestor
