//===- EvictionQuestion.h - Which live range gives up its register --------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// LLVM describes up to 33 candidates by tensors (llvm/lib/CodeGen/
// MLRegAllocEvictAdvisor.cpp): registers in the order of allocation, each with
// what is known of the live ranges that would have to leave it, and at the end the
// live range that needs a register, which stands for evicting nothing. A mask says
// which of them may be chosen. The same rows as src/nestor/problems/
// regalloc_eviction makes, bit for bit.
//
//===----------------------------------------------------------------------===//

#ifndef NESTOR_EVICTIONQUESTION_H
#define NESTOR_EVICTIONQUESTION_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/Analysis/MLModelRunner.h"
#include "llvm/Analysis/TensorSpec.h"
#include "llvm/Support/Error.h"
#include <string>
#include <vector>

namespace nestor {

constexpr unsigned MaxCandidates = 33;
/// The candidate that stands for evicting nothing.
constexpr unsigned OwnCandidate = 32;

/// One input of a policy: a tensor of LLVM's or what follows from the tensors.
struct EvictionFeature {
  enum Source {
    Tensor,
    Position,      ///< Index among the 33.
    IsOwn,         ///< 1 for the candidate that stands for evicting nothing.
    WeightToOwn,   ///< log2 of the weight over the own live range's.
    WeightToLeast, ///< log2 of the weight over the least of the others'.
    Count,         ///< How many candidates may be chosen.
    IsDefault,     ///< 1 for the candidate that the stock heuristic chooses.
  };
  Source From;
  size_t Index = 0; ///< Of the tensor.
  /// Read it of the candidate that the stock heuristic chooses, not of the row's.
  bool OfDefault = false;
};

/// The tensors of a compiler, by name.
class EvictionTensors {
public:
  /// Fails if the compiler asks in a way that is not supported.
  static llvm::Expected<EvictionTensors>
  create(const std::vector<llvm::TensorSpec> &Specs);

  /// Where each of \p Names comes from, or which ones this compiler lacks.
  llvm::Expected<std::vector<EvictionFeature>>
  bind(llvm::ArrayRef<std::string> Names) const;

  const std::vector<llvm::TensorSpec> &specs() const { return Specs; }

private:
  friend class EvictionQuestion;
  std::vector<llvm::TensorSpec> Specs;
  size_t Mask = 0, Weight = 0;
};

/// One question; valid while the tensors hold its values.
class EvictionQuestion {
public:
  /// \p Default is the stock heuristic's candidate, or -1 if it is not on offer.
  EvictionQuestion(const EvictionTensors &Tensors, const llvm::MLModelRunner &Values,
                   int Default);

  /// The candidates that may be chosen, ascending; at least one.
  llvm::ArrayRef<unsigned> allowed() const { return Allowed; }
  bool allows(int Candidate) const {
    return Candidate >= 0 && llvm::is_contained(Allowed, unsigned(Candidate));
  }
  int defaultCandidate() const { return Default; }
  double read(const EvictionFeature &F, unsigned Candidate) const;

private:
  double tensor(size_t Index, unsigned Candidate) const;
  double weight(unsigned Candidate) const { return tensor(Tensors.Weight, Candidate); }

  const EvictionTensors &Tensors;
  const llvm::MLModelRunner &Values;
  const int Default;
  llvm::SmallVector<unsigned, MaxCandidates> Allowed;
  double Least = 0; ///< Weight among the candidates but the own one.
};

} // namespace nestor

#endif
