//===- Bounds.cpp - What a logit cannot exceed ----------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Policy.h"
#include "llvm/ADT/STLExtras.h"
#include <algorithm>
#include <cmath>

using namespace llvm;

namespace nestor {

// Rounded products, sums, comparisons and normalisation are all monotonic. So the
// bounds of each step, computed by the operations and in the order of logit(), hold
// for what logit() computes, and not only for what it would compute exactly. Finite
// bounds say that nothing between them overflows.
bool MLPPolicy::neverPositive(ArrayRef<double> Lowest, ArrayRef<double> Highest) {
  if (Quantile.Boundaries)
    return false;
  std::vector<float> &FromLow = Low[0], &FromHigh = High[0], &ToLow = Low[1],
                     &ToHigh = High[1];
  FromLow.resize(Lowest.size());
  FromHigh.resize(Lowest.size());
  for (size_t I = 0; I < Lowest.size(); ++I) {
    const float A = normaliseByLog(I, Lowest[I]), B = normaliseByLog(I, Highest[I]);
    FromLow[I] = std::min(A, B); // A scale may be negative.
    FromHigh[I] = std::max(A, B);
  }
  for (const Layer &L : Layers) {
    ToLow.assign(L.Bias.begin(), L.Bias.end());
    ToHigh = ToLow;
    for (unsigned J = 0; J < L.In; ++J) {
      const float *Column = L.Weights.data() + size_t(J) * L.Out;
      for (unsigned I = 0; I < L.Out; ++I) {
        const float A = Column[I] * FromLow[J], B = Column[I] * FromHigh[J];
        ToLow[I] += std::min(A, B);
        ToHigh[I] += std::max(A, B);
      }
    }
    for (unsigned I = 0; I < L.Out; ++I)
      if (!std::isfinite(ToLow[I]) || !std::isfinite(ToHigh[I]))
        return false;
    if (&L != &Layers.back())
      for (std::vector<float> *Bounds : {&ToLow, &ToHigh})
        for (float &V : *Bounds)
          V = V > 0 ? V : 0;
    std::swap(FromLow, ToLow);
    std::swap(FromHigh, ToHigh);
  }
  return (FromHigh.size() == 1 ? FromHigh[0] : FromHigh[1] - FromLow[0]) <= 0;
}

void TreesPolicy::findBounds() {
  Greatest.resize(Nodes.size());
  Least.resize(Nodes.size());
  for (size_t I = Nodes.size(); I-- > 0;) { // Children come after their parents.
    const Node &N = Nodes[I];
    const bool IsLeaf = N.Right == I;
    Greatest[I] = IsLeaf ? N.Number : std::max(Greatest[N.Left], Greatest[N.Right]);
    Least[I] = IsLeaf ? N.Number : std::min(Least[N.Left], Least[N.Right]);
  }
  double Magnitude = 0;
  for (uint32_t Root : Roots) {
    GreatestSum += Greatest[Root];
    Magnitude += std::max(std::abs(Greatest[Root]), std::abs(Least[Root]));
  }
  // More than all that roundings can make of sums of these values in any order: less
  // than 8 n operations, each wrong by 2^-53 of at most twice the magnitude.
  Slack = double(Roots.size()) * Magnitude * 0x1p-48;
  Decisive = Roots;
  auto Width = [&](uint32_t Root) { return Greatest[Root] - Least[Root]; };
  llvm::sort(Decisive, [&](uint32_t A, uint32_t B) { return Width(A) > Width(B); });
  WidthsAfter.resize(Decisive.size());
  double Widths = 0;
  for (size_t I = Decisive.size(); I-- > 0;) {
    WidthsAfter[I] = Widths;
    Widths += Width(Decisive[I]);
  }
}

/// The child of \p At to which the intervals lead, or \p At itself where they lie on both
/// sides of its threshold, or where it is a leaf.
uint32_t TreesPolicy::next(uint32_t At, ArrayRef<double> Lowest,
                           ArrayRef<double> Highest) const {
  const Node &N = Nodes[At]; // The children of a leaf are the leaf.
  const uint32_t Otherwise = Lowest[N.Feature] > N.Number ? N.Right : At;
  return Highest[N.Feature] <= N.Number ? uint32_t(N.Left) : Otherwise;
}

/// Where the intervals lead from each of at most Lanes nodes, walked in step as in logit().
std::array<uint32_t, TreesPolicy::Lanes>
TreesPolicy::ends(ArrayRef<uint32_t> From, ArrayRef<double> Lowest,
                  ArrayRef<double> Highest) const {
  std::array<uint32_t, Lanes> At = {};
  llvm::copy(From, At.begin());
  for (uint32_t Moved = 1; Moved;) {
    Moved = 0;
    for (uint32_t &A : At) {
      const uint32_t Between = next(A, Lowest, Highest);
      A = next(Between, Lowest, Highest);
      Moved |= A ^ Between;
    }
  }
  return At;
}

/// The greatest value below \p At, where intervals led. Where they decide no further it looks
/// at both children; on the packaged policies to do so more than once settles no more.
double TreesPolicy::greatest(uint32_t At, ArrayRef<double> Lowest,
                             ArrayRef<double> Highest) const {
  auto Below = [&](uint32_t Child) {
    for (uint32_t Next; (Next = next(Child, Lowest, Highest)) != Child;)
      Child = Next;
    return Greatest[Child];
  };
  const Node &N = Nodes[At];
  return N.Right == At ? N.Number : std::max(Below(N.Left), Below(N.Right));
}

bool TreesPolicy::alwaysPositive(ArrayRef<double> Lowest, ArrayRef<double> Highest) {
  if (Greatest.empty())
    findBounds();
  double Sum = 0;
  for (size_t I = 0; I < Roots.size(); I += Lanes) {
    const auto Group = ArrayRef(Roots).drop_front(I).take_front(Lanes);
    const auto At = ends(Group, Lowest, Highest);
    for (size_t K = 0; K < Group.size(); ++K)
      Sum += Least[At[K]];
  }
  return Sum > Slack;
}

// The sum of the greatest values of all trees, made smaller tree by tree. Trees that
// a person wrote as rules have values that decide alone, and come first.
bool TreesPolicy::neverPositive(ArrayRef<double> Lowest, ArrayRef<double> Highest) {
  if (Greatest.empty())
    findBounds();
  double Sum = GreatestSum;
  for (size_t I = 0; I < Decisive.size(); I += Lanes) {
    const auto Group = ArrayRef(Decisive).drop_front(I).take_front(Lanes);
    const auto At = ends(Group, Lowest, Highest);
    for (size_t K = 0; K < Group.size(); ++K) {
      Sum -= Greatest[Group[K]] - greatest(At[K], Lowest, Highest);
      if (Sum < -Slack) // Never with values so large that sums are infinite.
        return true;
      if (Sum > WidthsAfter[I + K]) // Even the least values of the rest would leave it so.
        return false;
    }
  }
  return false;
}

} // namespace nestor
