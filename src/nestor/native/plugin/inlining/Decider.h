//===- Decider.h - Policy, default, sample or override: the answer --------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NESTOR_DECIDER_H
#define NESTOR_DECIDER_H

#include "BoundPolicy.h"
#include "Decision.h"
#include "InliningOptions.h"
#include "Overrides.h"
#include "SiteKeys.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/Analysis/TensorSpec.h"
#include "llvm/IR/InstrTypes.h"
#include "llvm/Support/Error.h"
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace nestor {

/// Turns the features of a call site into an answer, as the settings ask for it: by the
/// policy for the caller, if there is one, or by the default.
class Decider {
public:
  /// Loads what \p S names and checks it against the features on offer, or says
  /// in one sentence what is wrong.
  static llvm::Expected<Decider>
  create(llvm::Module &M, const InliningSettings &S,
         llvm::ArrayRef<llvm::TensorSpec> Offered);

  /// The tensors that decide() may read, by index.
  llvm::ArrayRef<size_t> tensors() const { return Tensors; }

  /// \p Default gives the stock heuristic's answer and \p Read a tensor's value;
  /// each is called only if the answer depends on it. \p CanTry: see SiteFeatures.
  Decision decide(llvm::CallBase &CB, llvm::function_ref<bool()> Default,
                  llvm::function_ref<double(size_t)> Read,
                  llvm::function_ref<bool(Price)> CanTry);

  /// To be called when the site of \p D was inlined into \p Caller.
  void onInlined(llvm::Function &Caller, const Decision &D) {
    if (Keys)
      Keys->onInlined(Caller, D.Site);
  }

  bool hasPolicy() const { return !Policies.empty(); }
  /// Whether the overrides want this module decided without the program's summary.
  bool isWithoutSummary() const { return WithoutSummary; }
  /// Whether a policy decides about the calls in \p Caller.
  bool actsIn(const llvm::Function &Caller) const { return policyFor(Caller); }
  /// Whether there is a policy to which LLVM's growth cap applies.
  bool isCapped() const { return llvm::any_of(Policies, Capped); }
  /// Whether such a policy decides about the calls in \p Caller.
  bool isCappedIn(const llvm::Function &Caller) const {
    const BoundPolicy *Policy = policyFor(Caller);
    return Policy && Policy->isCapped();
  }
  /// Whether a policy has spent what it may copy.
  bool isSpent() const {
    return llvm::any_of(Policies, [](const BoundPolicy &P) { return P.isSpent(); });
  }
  /// How often the default has decided in the place of such a policy.
  uint64_t askedWhenSpent() const { return AskedWhenSpent; }
  /// To be called before \p CB is inlined as \p D says. An answer alone does not
  /// count: there are calls that cannot be inlined, and advisors see that at
  /// different times.
  void onInlining(const llvm::CallBase &CB, const Decision &D);
  bool usesSiteKeys() const { return Keys.has_value(); }
  /// To be called when all is decided: leaves no trace of the keys in \p M, and
  /// says so if the policy was in vain.
  void finish(llvm::Module &M) const;

  size_t overrides() const { return Fixed.size(); }

private:
  Decider() = default;
  static bool Capped(const BoundPolicy &P) { return P.isCapped(); }
  const BoundPolicy *policyFor(const llvm::Function &Caller) const;
  BoundPolicy *policyFor(const llvm::Function &Caller) {
    return const_cast<BoundPolicy *>(std::as_const(*this).policyFor(Caller));
  }
  void askPolicy(BoundPolicy &Policy, llvm::CallBase &CB, Decision &D);

  std::vector<BoundPolicy> Policies; ///< For different functions.
  Overrides Fixed;
  std::optional<SiteKeys> Keys; ///< Only when something needs them.
  std::optional<uint64_t> Seed;
  bool SeedCallees = false;
  double Temperature = 1;
  /// Whether an answer is all that is wanted: no log, and no number is drawn.
  bool Settles = false;
  bool Logs = false;
  std::string Elsewhere; ///< As in PoliciesOfModule.
  bool WithoutSummary = false;
  uint64_t Asked = 0, AskedWhenSpent = 0;
  std::vector<size_t> Tensors;
};

} // namespace nestor

#endif
