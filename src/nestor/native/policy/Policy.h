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
  /// Whether the logit is above 0 for no row that lies, feature by feature, between
  /// the finite rows \p Lowest and \p Highest. Sound and not complete: "false" says
  /// nothing. So a greedy answer can be known before all features are.
  virtual bool neverPositive(llvm::ArrayRef<double> Lowest,
                             llvm::ArrayRef<double> Highest) {
    return false;
  }
  /// The same for a logit that is above 0 in all of these rows.
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
  bool neverPositive(llvm::ArrayRef<double> Lowest,
                     llvm::ArrayRef<double> Highest) override;

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
  /// \p Heights are those of the nodes, in steps to the deepest leaf below.
  TreesPolicy(std::vector<Node> Nodes, std::vector<uint32_t> Roots,
              llvm::ArrayRef<uint16_t> Heights);
  double logit(llvm::ArrayRef<double> Features) override;
  bool neverPositive(llvm::ArrayRef<double> Lowest,
                     llvm::ArrayRef<double> Highest) override;
  bool alwaysPositive(llvm::ArrayRef<double> Lowest,
                      llvm::ArrayRef<double> Highest) override;

private:
  static constexpr unsigned Lanes = 8; ///< Trees walked in step.

  void findBounds();
  uint32_t next(uint32_t At, llvm::ArrayRef<double> Lowest,
                llvm::ArrayRef<double> Highest) const;
  std::array<uint32_t, Lanes> ends(llvm::ArrayRef<uint32_t> From,
                                   llvm::ArrayRef<double> Lowest,
                                   llvm::ArrayRef<double> Highest) const;
  double greatest(uint32_t At, llvm::ArrayRef<double> Lowest,
                  llvm::ArrayRef<double> Highest) const;

  std::vector<Node> Nodes;
  std::vector<uint32_t> Roots;
  std::vector<unsigned> Depths; ///< Of each group of Lanes trees.

  // For neverPositive() and alwaysPositive(), made when one is first called.
  std::vector<double> Greatest, Least; ///< By node: of the values of its leaves.
  std::vector<uint32_t> Decisive; ///< The roots, those of the widest trees first.
  /// How much all trees behind that one of Decisive can lower a sum of greatest values.
  std::vector<double> WidthsAfter;
  double GreatestSum = 0, Slack = 0;
};

/// A piecewise-linear log2(1 + |x|) with the sign of x.
double squash(double X);

} // namespace nestor

#endif
