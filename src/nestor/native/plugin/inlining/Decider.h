//===- Decider.h - Policy, default, sample or override: the answer --------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NESTOR_DECIDER_H
#define NESTOR_DECIDER_H

#include "Decision.h"
#include "InliningOptions.h"
#include "Overrides.h"
#include "SiteKeys.h"
#include "policy/PolicyFile.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/Analysis/TensorSpec.h"
#include "llvm/IR/InstrTypes.h"
#include "llvm/Support/Error.h"
#include <optional>
#include <vector>

namespace nestor {

/// Turns the features of a call site into an answer, as the settings ask for it.
class Decider {
public:
  /// Loads what \p S names and checks it against the features on offer, or says
  /// in one sentence what is wrong.
  static llvm::Expected<Decider>
  create(llvm::Module &M, const InliningSettings &S,
         llvm::ArrayRef<llvm::TensorSpec> Offered);

  /// The features on offer that the policy in the file \p Path reads, by index.
  static llvm::Expected<std::vector<size_t>>
  readBy(llvm::StringRef Path, llvm::ArrayRef<llvm::TensorSpec> Offered);

  /// The tensors that decide() may read, by index.
  llvm::ArrayRef<size_t> tensors() const { return Tensors; }

  /// \p Default gives the stock heuristic's answer and \p Read a tensor's value;
  /// each is called only if the answer depends on it.
  Decision decide(llvm::CallBase &CB, llvm::function_ref<bool()> Default,
                  llvm::function_ref<double(size_t)> Read);

  /// To be called when the site of \p D was inlined into \p Caller.
  void onInlined(llvm::Function &Caller, const Decision &D) {
    if (Keys)
      Keys->onInlined(Caller, D.Site);
  }

  bool hasPolicy() const { return Policy.has_value(); }
  /// Whether the overrides want this module decided without the program's summary.
  bool isWithoutSummary() const { return WithoutSummary; }
  /// Whether the policy decides about the calls in \p Caller.
  bool actsIn(const llvm::Function &Caller) const {
    return Policy && Problem->ActsIn(Caller);
  }
  /// Whether LLVM's growth cap holds: past it nothing more is inlined. Not for a
  /// policy that deviates, since stopping half-way leaves large modules much
  /// larger than stock. Its deviations have a limit of their own.
  bool isCapped() const {
    return Policy && Policy->Meaning == Answers::Decision;
  }
  /// Whether the policy's deviations have copied as many instructions as the
  /// module had; the default has decided since, this many times.
  bool isSpent() const { return Copied > Copyable; }
  uint64_t askedWhenSpent() const { return AskedWhenSpent; }
  /// To be called before \p Callee is inlined as \p D says. An answer alone does not
  /// count: there are calls that cannot be inlined, and advisors see that at
  /// different times.
  void onInlining(const llvm::Function &Callee, const Decision &D);
  bool usesSiteKeys() const { return Keys.has_value(); }
  /// To be called when all is decided: leaves no trace of the keys in \p M, and
  /// says so if the policy was in vain.
  void finish(llvm::Module &M) const;

  size_t overrides() const { return Fixed.size(); }

private:
  Decider() = default;
  void dropPolicy();
  void orderInputs();
  bool readInputs(const Decision &D, llvm::function_ref<double(size_t)> Read);
  void askPolicy(llvm::CallBase &CB, Decision &D);

  std::optional<LoadedPolicy> Policy; ///< None: the default decides.
  const InliningProblem *Problem = nullptr; ///< The policy's.
  Overrides Fixed;
  std::optional<SiteKeys> Keys; ///< Only when something needs them.
  std::optional<uint64_t> Seed;
  bool SeedCallees = false;
  double Temperature = 1;
  bool NeedDefault = true;
  bool WrongLevel = false; ///< The policy acts in no function of the module.
  bool WithoutSummary = false;
  uint64_t Asked = 0;
  uint64_t Copyable = ~0ULL, Copied = 0, AskedWhenSpent = 0;
  std::vector<size_t> Tensors;
  std::vector<int> Inputs; ///< Per policy feature: its tensor, -1 the default.
  std::vector<double> X;   ///< Scratch for the policy's input.

  /// Features that are read together, and what became of looking whether they settle
  /// the answer.
  struct Step {
    std::vector<size_t> Features; ///< Indices of Inputs.
    unsigned Looks = 0, Settled = 0;
    /// Whether looking pays, by experience: it never changes an answer.
    bool pays() const { return Looks < 16 || Settled * 16 >= Looks; }
  };
  std::vector<Step> Steps; ///< The cheapest first.
  /// Whether an answer is all that is wanted: no log, and no number is drawn.
  bool Settles = false;
  std::vector<double> Lowest, Highest; ///< Scratch: what is known of X.
};

} // namespace nestor

#endif
