//===- BoundPolicy.h - A policy and where its features come from ----------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NESTOR_BOUNDPOLICY_H
#define NESTOR_BOUNDPOLICY_H

#include "Decision.h"
#include "InliningOptions.h"
#include "SiteFeatures.h"
#include "policy/PolicyFile.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/Analysis/TensorSpec.h"
#include "llvm/Support/Error.h"
#include <algorithm>
#include <string>
#include <vector>

namespace nestor {

/// A policy about the calls in the functions of one problem: it reads what it needs of a
/// question, and how much it may still copy is counted here.
class BoundPolicy {
public:
  /// Checks \p File against the features on offer.
  static llvm::Expected<BoundPolicy> create(LoadedPolicy File,
                                            llvm::ArrayRef<llvm::TensorSpec> Offered);

  /// Whether it decides about the calls in \p Caller.
  bool actsIn(const llvm::Function &Caller) const { return Problem->ActsIn(Caller); }

  /// The tensors that it may read, by index.
  std::vector<size_t> tensors() const;
  /// Whether its answer depends on the default's.
  bool readsDefault() const;
  /// Whether LLVM's growth cap holds: past it nothing more is inlined. Not for a
  /// policy that deviates, since stopping half-way leaves large modules much
  /// larger than stock. Its deviations have a limit of their own.
  bool isCapped() const { return !deviates(); }

  /// Lets its deviations copy as many instructions as \p M has. Past that the default decides.
  void limitCopies(const llvm::Module &M);
  bool isSpent() const { return Copied > Copyable; }
  void onCopied(uint64_t Instructions) { Copied += Instructions; }

  /// Reads the question \p D; false if the action is known to be 0 before all is read: a
  /// value is out of the policy's range, or what is known keeps the logit from being
  /// positive. \p Settles says that an answer is all that is wanted. Features of a trial
  /// are 0 where the action does not hang on them, and unless \p MayTry says so.
  bool read(const Decision &D, llvm::function_ref<double(size_t)> Read, bool Settles,
            llvm::function_ref<bool(Price)> MayTry);
  /// Of the question that was read last.
  double logit() const { return File.Evaluator->logit(X); }
  Rule rule() const { return File.ActionRule; }
  /// The answer to which \p Action comes where the default's is \p Default.
  int64_t answer(int64_t Action, int64_t Default) const {
    return deviates() ? Action != Default : Action;
  }

private:
  BoundPolicy(LoadedPolicy File, std::vector<int> Inputs);
  void orderInputs();
  bool hangs() const;
  /// Whether its answers say where to leave the default's.
  bool deviates() const { return File.Meaning == Answers::Deviation; }

  LoadedPolicy File;
  const InliningProblem *Problem;
  std::vector<int> Inputs; ///< Per feature: its tensor, -1 the default.
  std::vector<double> X;   ///< Scratch for the evaluator's input.
  uint64_t Copyable = ~0ULL, Copied = 0;

  /// Features that are read together, and what became of looking whether they settle
  /// the answer. By this experience it is decided how much of the policy to look at, which
  /// never changes an answer.
  struct Step {
    std::vector<size_t> Features; ///< Indices of Inputs.
    Price Costs = Price::Glance;
    unsigned Looks = 0, Settled = 0;
    unsigned Longest = 0; ///< The most parts of the policy that settled one.

    /// A long look has to pay; a short one finds what rules settle, also where the first
    /// questions of a module are others than the rest.
    unsigned most() const {
      const bool IsNew = Looks < 16, Pays = Settled * 16 >= Looks;
      return IsNew ? Policy::AllParts : Pays ? 2 * Longest : Policy::Lanes;
    }
    /// Takes what neverPositive() says as experience; whether it settles the answer.
    bool settledBy(unsigned Parts) {
      ++Looks;
      Settled += Parts != 0;
      Longest = std::max(Longest, Parts);
      return Parts != 0;
    }
  };
  std::vector<Step> Steps; ///< The cheapest first.
  std::vector<double> Lowest, Highest; ///< Scratch: what is known of X.
};

/// The policies for one module.
struct PoliciesOfModule {
  std::vector<BoundPolicy> Acting; ///< For different functions.
  /// If there are none, although some were named: where those would act, for a remark.
  std::string Elsewhere;
};

/// Loads what \p S names for the functions of \p M, or says in one sentence what is wrong:
/// two policies may not be for the same problem. Those that act in no function are not
/// read further than that.
llvm::Expected<PoliciesOfModule> loadPolicies(const llvm::Module &M,
                                              const InliningSettings &S,
                                              llvm::ArrayRef<llvm::TensorSpec> Offered);

/// The features on offer that the policies in the files \p Paths read, by index.
llvm::Expected<std::vector<size_t>> readBy(llvm::ArrayRef<std::string> Paths,
                                           llvm::ArrayRef<llvm::TensorSpec> Offered);

} // namespace nestor

#endif
