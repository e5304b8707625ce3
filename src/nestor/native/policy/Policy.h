//===- Policy.h - Evaluates a policy on one row ---------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The arithmetic is that of docs/reference/formats.md, bit for bit: f32 products
// and sums in a fixed order for networks, f64 for trees, nothing that a C library
// or an instruction set may round differently.
//
//===----------------------------------------------------------------------===//

#ifndef NESTOR_POLICY_H
#define NESTOR_POLICY_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/STLExtras.h"
#include <array>
#include <cstdint>
#include <vector>

namespace nestor {

/// Maps the features of one row to a logit.
class Policy {
public:
  virtual ~Policy() = default;
  /// \p Features are in the policy's order. Not thread-safe: scratch memory is
  /// reused between calls.
  virtual double logit(llvm::ArrayRef<double> Features) = 0;
  static constexpr unsigned AllParts = ~0U;
  /// Parts that are looked at together: fewer take no less time.
  static constexpr unsigned Lanes = 8;
  /// Whether the logit is above 0 for no row that lies, feature by feature, between
  /// the finite rows \p Lowest and \p Highest: after how many parts of the policy that was
  /// certain, or 0. Parts are trees, the most decisive ones first, or the first layer's units,
  /// all or none; no more than \p Most are looked at. Sound and not complete: 0 says nothing.
  /// So a greedy answer can be known before all features are.
  virtual unsigned neverPositive(llvm::ArrayRef<double> Lowest,
                                 llvm::ArrayRef<double> Highest,
                                 unsigned Most = AllParts) {
    return 0;
  }
  /// Whether it is above 0 in all of these rows; "false" says nothing either.
  virtual bool alwaysPositive(llvm::ArrayRef<double> Lowest,
                              llvm::ArrayRef<double> Highest) {
    return false;
  }
};

/// Normalised features through dense layers with ReLU between them.
class MLPPolicy final : public Policy {
public:
  struct Layer {
    unsigned In, Out;
    std::vector<float> Weights; ///< [In][Out]: a column per input, so that the
                                ///< inner loop runs over independent sums.
    std::vector<float> Bias;
  };
  struct LogTransform {
    std::vector<double> Shift, Scale;
  };
  struct QuantileTransform {
    unsigned Boundaries = 0;   ///< Per feature.
    std::vector<float> Values; ///< [feature][boundary], each row ascending.
    /// Per feature, for a fourth input (x - Mean) * Scale; empty if there is none.
    std::vector<float> Mean, Scale;
  };

  MLPPolicy(LogTransform Log, std::vector<Layer> Layers);
  MLPPolicy(QuantileTransform Quantile, std::vector<Layer> Layers);
  double logit(llvm::ArrayRef<double> Features) override;
  unsigned neverPositive(llvm::ArrayRef<double> Lowest, llvm::ArrayRef<double> Highest,
                         unsigned Most = AllParts) override;

private:
  void normalise(llvm::ArrayRef<double> Features, float *Out) const;
  float normaliseByLog(size_t Feature, double X) const;

  LogTransform Log;
  QuantileTransform Quantile;
  std::vector<Layer> Layers;
  std::vector<float> Scratch[2];
  std::vector<float> Low[2], High[2]; ///< Scratch of neverPositive().
};

/// The sum of regression trees.
class TreesPolicy final : public Policy {
public:
  /// 16 bytes, of which a compile reads tens of thousands. A leaf is its own child,
  /// so that trees of different depth can be walked in step without a branch.
  struct Node {
    static constexpr unsigned FeatureBits = 10, IndexBits = 32 - FeatureBits;
    double Number; ///< The threshold of an inner node, the value of a leaf.
    uint32_t Feature : FeatureBits;
    uint32_t Left : IndexBits;
    uint32_t Right;
  };
  TreesPolicy(llvm::OwningArrayRef<Node> Nodes, std::vector<uint32_t> Roots)
      : Nodes(std::move(Nodes)), Roots(std::move(Roots)) {}
  double logit(llvm::ArrayRef<double> Features) override;
  unsigned neverPositive(llvm::ArrayRef<double> Lowest, llvm::ArrayRef<double> Highest,
                         unsigned Most = AllParts) override;
  bool alwaysPositive(llvm::ArrayRef<double> Lowest,
                      llvm::ArrayRef<double> Highest) override;

private:
  using Group = std::array<uint32_t, Lanes>;
  /// What is known of a row.
  struct Intervals {
    Intervals(llvm::ArrayRef<double> Lowest, llvm::ArrayRef<double> Highest);
    llvm::ArrayRef<double> Lowest, Highest;
    uint64_t Open = 0; ///< Bits of the features that are not known exactly.
  };
  /// One bit of 64 for each feature; more than 64 features share bits.
  static uint64_t bit(size_t Feature) { return uint64_t(1) << (Feature % 64); }

  /// Where \p Next leads from each of at most Lanes nodes, which are walked in step. Paths are
  /// shorter than trees are deep, so the walk ends when no lane moves; a lane without a tree
  /// walks node 0.
  template <typename NextNode>
  static Group walk(llvm::ArrayRef<uint32_t> From, NextNode Next) {
    Group At = {};
    llvm::copy(From, At.begin());
    for (uint32_t Moved = 1; Moved;) {
      Moved = 0;
      for (uint32_t &A : At) {
        const uint32_t Between = Next(A);
        A = Next(Between);
        Moved |= A ^ Between;
      }
    }
    return At;
  }
  uint32_t child(uint32_t At, llvm::ArrayRef<double> Row) const {
    const Node &N = Nodes[At]; // The children of a leaf are the leaf.
    return Row[N.Feature] <= N.Number ? uint32_t(N.Left) : N.Right;
  }

  /// Of the values of the leaves below a node, rounded outwards. Not doubles: to get the memory
  /// for them took a compile as long as to fill it.
  struct Bounds {
    float Least, Greatest;
  };
  bool isLeaf(uint32_t At) const { return Nodes[At].Right == At; }
  Bounds boundsOf(uint32_t At) const;
  void findBounds();
  std::vector<uint64_t> featuresRead() const;
  uint32_t next(uint32_t At, const Intervals &Known) const;
  Group ends(size_t First, const Intervals &Known) const;
  double greatest(uint32_t At, const Intervals &Known) const;
  double least(uint32_t At) const { return isLeaf(At) ? Nodes[At].Number : Below[At].Least; }

  llvm::OwningArrayRef<Node> Nodes;
  std::vector<uint32_t> Roots;

  // For neverPositive() and alwaysPositive(), made when one is first called.
  llvm::OwningArrayRef<Bounds> Below; ///< By node.
  std::vector<uint32_t> Decisive; ///< The roots, those of the widest trees first.
  std::vector<uint64_t> Reads; ///< Bits of the features of each group of Lanes of them.
  /// How much all trees behind that one of Decisive can change a sum of bounds.
  std::vector<double> WidthsAfter;
  double GreatestSum = 0, LeastSum = 0, Slack = 0;
};

/// A piecewise-linear log2(1 + |x|) with the sign of x.
double squash(double X);

} // namespace nestor

#endif
