//===- Rule.cpp - Turns the rows of a question into an action -------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Rule.h"
#include "Draws.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringSwitch.h"
#include <algorithm>
#include <cmath>
#include <limits>

using namespace llvm;

namespace nestor {

constexpr double LogRootTau = 0.91893853320467274178; // log(sqrt(2 pi))

std::optional<Rule> ruleNamed(StringRef Name) {
  return StringSwitch<std::optional<Rule>>(Name)
      .Case("threshold", Rule::Threshold)
      .Case("pick", Rule::Pick)
      .Case("value", Rule::Value)
      .Default(std::nullopt);
}

StringRef nameOf(Rule R) {
  switch (R) {
  case Rule::Threshold:
    return "threshold";
  case Rule::Pick:
    return "pick";
  case Rule::Value:
    return "value";
  }
  return "";
}

double positiveProbability(double Logit, double Temperature) {
  if (std::isnan(Logit)) // Not > 0: samples like the greedy answer.
    return 0;
  return 1 / (1 + std::exp(-Logit / Temperature));
}

static double timesLog(double P) { return P > 0 ? P * std::log(P) : 0; }

namespace {
/// The logits of a question, less the greatest.
class Softmax {
public:
  explicit Softmax(ArrayRef<double> Logits) {
    for (double L : Logits)
      // Infinity less infinity is not a number: the greatest finite one stands
      // for it.
      Shifted.push_back(std::isnan(L)
                            ? -std::numeric_limits<double>::infinity()
                            : std::min(L, std::numeric_limits<double>::max()));
    double Greatest = *std::max_element(Shifted.begin(), Shifted.end());
    if (std::isinf(Greatest))
      Shifted.front() = Greatest = 0;
    for (double &S : Shifted)
      S -= Greatest;
  }
  double shifted(size_t Row) const { return Shifted[Row]; }
  size_t greatest() const {
    return std::find(Shifted.begin(), Shifted.end(), 0.0) - Shifted.begin();
  }
  size_t rows() const { return Shifted.size(); }
  double weight(size_t Row, double Temperature) const {
    return std::exp(Shifted[Row] / Temperature);
  }
  double total(double Temperature) const {
    double Sum = 0;
    for (size_t Row = 0; Row < rows(); ++Row)
      Sum += weight(Row, Temperature);
    return Sum;
  }

private:
  SmallVector<double, 64> Shifted;
};
} // namespace

static double pick(const Softmax &S, double Uniform, double Temperature) {
  const double Cut = Uniform * S.total(Temperature);
  double Sum = 0;
  for (size_t Row = 0; Row < S.rows(); ++Row) {
    Sum += S.weight(Row, Temperature);
    if (Sum > Cut)
      return Row;
  }
  return S.greatest(); // Not reached: Cut is below the total.
}

double greedyAction(Rule R, ArrayRef<double> Logits) {
  switch (R) {
  case Rule::Threshold:
    return Logits[0] > 0;
  case Rule::Pick:
    return Softmax(Logits).greatest();
  case Rule::Value:
    return std::isfinite(Logits[0]) ? Logits[0] : 0;
  }
  return 0;
}

double sampleAction(Rule R, ArrayRef<double> Logits, double Uniform,
                    double Temperature) {
  switch (R) {
  case Rule::Threshold:
    return Uniform < positiveProbability(Logits[0], Temperature);
  case Rule::Pick:
    return pick(Softmax(Logits), Uniform, Temperature);
  case Rule::Value:
    return greedyAction(R, Logits) + Temperature * normalQuantile(Uniform);
  }
  return 0;
}

double logProbability(Rule R, ArrayRef<double> Logits, double Action,
                      double Temperature) {
  switch (R) {
  case Rule::Threshold: {
    const double Positive = positiveProbability(Logits[0], Temperature);
    return std::log(Action != 0 ? Positive : 1 - Positive);
  }
  case Rule::Pick: {
    const Softmax S(Logits);
    return S.shifted(size_t(Action)) / Temperature -
           std::log(S.total(Temperature));
  }
  case Rule::Value: {
    const double Z = (Action - greedyAction(R, Logits)) / Temperature;
    return -0.5 * Z * Z - std::log(Temperature) - LogRootTau;
  }
  }
  return 0;
}

double entropy(Rule R, ArrayRef<double> Logits, double Temperature) {
  switch (R) {
  case Rule::Threshold: {
    const double Positive = positiveProbability(Logits[0], Temperature);
    return -(timesLog(Positive) + timesLog(1 - Positive));
  }
  case Rule::Pick: {
    const Softmax S(Logits);
    const double Total = S.total(Temperature);
    double Sum = 0;
    for (size_t Row = 0; Row < S.rows(); ++Row)
      Sum += timesLog(S.weight(Row, Temperature) / Total);
    return -Sum;
  }
  case Rule::Value:
    return 0.5 + LogRootTau + std::log(Temperature);
  }
  return 0;
}

} // namespace nestor
