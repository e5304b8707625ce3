//===- Policy.cpp - Evaluates a policy on one row -------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Policy.h"
#include <algorithm>
#include <cmath>

namespace nestor {

double squash(double X) {
  int Exponent; // frexp: M = Mantissa * 2^Exponent with Mantissa in [0.5, 1)
  double Mantissa = std::frexp(std::fabs(X) + 1, &Exponent);
  return std::copysign((Exponent - 1) + (2 * Mantissa - 1), X);
}

MLPPolicy::MLPPolicy(LogTransform Log, std::vector<Layer> Layers)
    : Log(std::move(Log)), Layers(std::move(Layers)) {}

MLPPolicy::MLPPolicy(QuantileTransform Quantile, std::vector<Layer> Layers)
    : Quantile(std::move(Quantile)), Layers(std::move(Layers)) {}

float MLPPolicy::normaliseByLog(size_t Feature, double X) const {
  return float(
      std::clamp((squash(X) - Log.Shift[Feature]) * Log.Scale[Feature], -8.0, 8.0));
}

void MLPPolicy::normalise(llvm::ArrayRef<double> Features, float *Out) const {
  if (!Quantile.Boundaries) {
    for (size_t I = 0; I < Features.size(); ++I)
      Out[I] = normaliseByLog(I, Features[I]);
    return;
  }
  const float *Row = Quantile.Values.data();
  for (size_t I = 0; I < Features.size(); ++I) {
    const float X = float(Features[I]), *End = Row + Quantile.Boundaries;
    float Z = float(std::upper_bound(Row, End, X) - Row) / float(Quantile.Boundaries);
    *Out++ = Z;
    *Out++ = std::sqrt(Z);
    *Out++ = Z * Z;
    if (!Quantile.Mean.empty())
      *Out++ = (X - Quantile.Mean[I]) * Quantile.Scale[I];
    Row = End;
  }
}

/// Out += X * Column. Each output is a sum of its own, so vectorising over
/// outputs does not change any order of rounding.
static void addScaled(float *__restrict Out, const float *__restrict Column,
                      float X, unsigned N) {
  for (unsigned I = 0; I < N; ++I)
    Out[I] += Column[I] * X;
}

double MLPPolicy::logit(llvm::ArrayRef<double> Features) {
  std::vector<float> &X = Scratch[0], &Y = Scratch[1];
  X.resize(Layers.front().In);
  normalise(Features, X.data());
  for (const Layer &L : Layers) {
    Y.assign(L.Bias.begin(), L.Bias.end());
    for (unsigned J = 0; J < L.In; ++J)
      if (X[J] != 0) // Adding a zero changes no comparison, and ReLU makes many.
        addScaled(Y.data(), L.Weights.data() + size_t(J) * L.Out, X[J], L.Out);
    if (&L != &Layers.back())
      for (float &V : Y)
        V = V > 0 ? V : 0;
    std::swap(X, Y);
  }
  return X.size() == 1 ? X[0] : X[1] - X[0];
}

double TreesPolicy::logit(llvm::ArrayRef<double> Features) {
  double Sum = 0;
  for (size_t First = 0; First < Roots.size(); First += Lanes) {
    const auto From = llvm::ArrayRef(Roots).drop_front(First).take_front(Lanes);
    const Group At = walk(From, [&](uint32_t Index) { return child(Index, Features); });
    for (size_t K = 0; K < From.size(); ++K)
      Sum += Nodes[At[K]].Number;
  }
  return Sum;
}

} // namespace nestor
