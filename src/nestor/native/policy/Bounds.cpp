//===- Bounds.cpp - What a logit cannot exceed ----------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Policy.h"
#include "llvm/ADT/STLExtras.h"
#include <algorithm>
#include <cmath>
#include <limits>

using namespace llvm;

namespace nestor {

// Rounded products, sums, comparisons and normalisation are all monotonic. So the
// bounds of each step, computed by the operations and in the order of logit(), hold
// for what logit() computes, and not only for what it would compute exactly. Finite
// bounds say that nothing between them overflows.
unsigned MLPPolicy::neverPositive(ArrayRef<double> Lowest, ArrayRef<double> Highest,
                                  unsigned Most) {
  const unsigned Parts = Layers.front().Out;
  if (Quantile.Boundaries || Parts > Most)
    return 0;
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
        return 0;
    if (&L != &Layers.back())
      for (std::vector<float> *Bounds : {&ToLow, &ToHigh})
        for (float &V : *Bounds)
          V = V > 0 ? V : 0;
    std::swap(FromLow, ToLow);
    std::swap(FromHigh, ToHigh);
  }
  const float Greatest = FromHigh.size() == 1 ? FromHigh[0] : FromHigh[1] - FromLow[0];
  return Greatest <= 0 ? Parts : 0;
}

TreesPolicy::Intervals::Intervals(ArrayRef<double> Lowest, ArrayRef<double> Highest)
    : Lowest(Lowest), Highest(Highest) {
  for (size_t I = 0; I < Lowest.size(); ++I)
    Open |= Lowest[I] == Highest[I] ? 0 : bit(I);
}

/// A float that is not below \p V, and hardly above it.
static float above(double V) {
  constexpr float Most = std::numeric_limits<float>::max();
  const double Wider = V + (std::abs(V) * 0x1p-22 + 0x1p-140); // A float's step is less.
  return Wider > Most ? HUGE_VALF : float(std::max(Wider, -double(Most)));
}

TreesPolicy::Bounds TreesPolicy::boundsOf(uint32_t At) const {
  const Node &N = Nodes[At];
  if (isLeaf(At))
    return {-above(-N.Number), above(N.Number)};
  const Bounds &Left = Below[N.Left], &Right = Below[N.Right];
  return {std::min(Left.Least, Right.Least), std::max(Left.Greatest, Right.Greatest)};
}

/// Bits of the features that each of Decisive reads, or all bits where the nodes of a tree do not
/// lie between its root and the next one.
std::vector<uint64_t> TreesPolicy::featuresRead() const {
  std::vector<uint32_t> Starts = Roots;
  llvm::sort(Starts);
  Starts.erase(std::unique(Starts.begin(), Starts.end()), Starts.end());
  Starts.push_back(Nodes.size());
  std::vector<uint64_t> Result;
  for (uint32_t Root : Decisive) {
    const uint32_t End = *llvm::upper_bound(Starts, Root);
    uint64_t Bits = 0;
    for (uint32_t I = Root; I < End; ++I) // Children come after their parents.
      if (const Node &N = Nodes[I]; !isLeaf(I))
        Bits |= std::max<uint32_t>(N.Left, N.Right) < End ? bit(N.Feature) : ~uint64_t(0);
    Result.push_back(Bits);
  }
  return Result;
}

void TreesPolicy::findBounds() {
  Below = OwningArrayRef<Bounds>(Nodes.size());
  for (size_t I = Nodes.size(); I-- > 0;)
    Below[I] = boundsOf(I);
  double Magnitude = 0;
  for (uint32_t Root : Roots) {
    const Bounds &B = Below[Root];
    GreatestSum += B.Greatest;
    LeastSum += B.Least;
    Magnitude += std::max(std::abs(B.Greatest), std::abs(B.Least));
  }
  // More than all that roundings can make of sums of these values in any order: less
  // than 8 n operations, each wrong by 2^-53 of at most twice the magnitude.
  Slack = double(Roots.size()) * Magnitude * 0x1p-48;
  Decisive = Roots;
  auto Width = [&](uint32_t Root) { return double(Below[Root].Greatest) - Below[Root].Least; };
  llvm::stable_sort(Decisive, [&](uint32_t A, uint32_t B) { return Width(A) > Width(B); });
  const std::vector<uint64_t> ReadsOf = featuresRead();
  WidthsAfter.resize(Decisive.size());
  Reads.resize(Decisive.size() / Lanes + 1);
  double Widths = 0;
  for (size_t I = Decisive.size(); I-- > 0;) {
    WidthsAfter[I] = Widths;
    Widths += Width(Decisive[I]);
    Reads[I / Lanes] |= ReadsOf[I];
  }
}

/// The child of \p At to which the intervals lead, or \p At itself where they lie on both
/// sides of its threshold, or where it is a leaf.
uint32_t TreesPolicy::next(uint32_t At, const Intervals &Known) const {
  const Node &N = Nodes[At];
  const uint32_t Otherwise = Known.Lowest[N.Feature] > N.Number ? N.Right : At;
  return Known.Highest[N.Feature] <= N.Number ? uint32_t(N.Left) : Otherwise;
}

/// Where the intervals lead in the trees of a group, whose first of Decisive is \p First.
TreesPolicy::Group TreesPolicy::ends(size_t First, const Intervals &Known) const {
  const auto From = ArrayRef(Decisive).drop_front(First).take_front(Lanes);
  if (Reads[First / Lanes] & Known.Open)
    return walk(From, [&](uint32_t At) { return next(At, Known); });
  return walk(From, [&](uint32_t At) { return child(At, Known.Lowest); });
}

/// The greatest value below \p At, where intervals led. Where they decide no further it looks
/// at both children; on the packaged policies to do so more than once settles no more.
double TreesPolicy::greatest(uint32_t At, const Intervals &Known) const {
  auto Past = [&](uint32_t Child) {
    for (uint32_t Next; (Next = next(Child, Known)) != Child;)
      Child = Next;
    return Below[Child].Greatest;
  };
  const Node &N = Nodes[At];
  return isLeaf(At) ? N.Number : std::max(Past(N.Left), Past(N.Right));
}

// Each begins with the sum of the bounds of whole trees and makes it tighter tree by tree.
// Trees that a person wrote as rules have values that decide alone, and come first. Nothing
// is concluded from values so large that sums are infinite.
bool TreesPolicy::alwaysPositive(ArrayRef<double> Lowest, ArrayRef<double> Highest) {
  if (Below.empty())
    findBounds();
  const Intervals Known(Lowest, Highest);
  double Sum = LeastSum;
  for (size_t First = 0; First < Decisive.size(); First += Lanes) {
    const Group At = ends(First, Known);
    for (size_t I = First; I < std::min(First + Lanes, Decisive.size()); ++I) {
      Sum += least(At[I - First]) - Below[Decisive[I]].Least;
      if (Sum > Slack)
        return true;
      if (Sum < -WidthsAfter[I]) // Even the greatest values of the rest leave it so.
        return false;
    }
  }
  return false;
}

unsigned TreesPolicy::neverPositive(ArrayRef<double> Lowest, ArrayRef<double> Highest,
                                    unsigned Most) {
  if (Below.empty())
    findBounds();
  const Intervals Known(Lowest, Highest);
  const size_t End = std::min<size_t>(Decisive.size(), Most);
  double Sum = GreatestSum;
  for (size_t First = 0; First < End; First += Lanes) {
    const Group At = ends(First, Known);
    for (size_t I = First; I < std::min(First + Lanes, End); ++I) {
      Sum -= Below[Decisive[I]].Greatest - greatest(At[I - First], Known);
      if (Sum < -Slack)
        return I + 1;
      if (Sum > WidthsAfter[I]) // Even the least values of the rest leave it so.
        return 0;
    }
  }
  return 0;
}

} // namespace nestor
