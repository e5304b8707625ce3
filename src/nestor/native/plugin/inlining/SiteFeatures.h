//===- SiteFeatures.h - Features that LLVM's own advisor lacks ------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// LLVM's features say what inlining a site would cost, and little of what it
// might save: whether the callee goes away, what the code of both looks like, what
// the rest of the program does with the callee. These features say it. Both
// advisors offer them behind LLVM's own; a value is that of the IR as it is when
// the question comes up, and is computed only when it is read.
//
//===----------------------------------------------------------------------===//

#ifndef NESTOR_SITEFEATURES_H
#define NESTOR_SITEFEATURES_H

#include "CallFrequencies.h"
#include "Embeddings.h"
#include "ProgramSummary.h"
#include "trials/QuestionTrials.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/Analysis/TensorSpec.h"
#include "llvm/IR/InstrTypes.h"
#include "llvm/IR/PassManager.h"
#include <memory>
#include <optional>
#include <vector>

namespace nestor {

/// What it costs to read a feature, the least first.
enum class Price {
  Glance,            ///< The call, types, attributes.
  Function,          ///< A pass over a function or its uses, kept while it is the same.
  Estimate,          ///< LLVM's analysis of the callee for this call.
  LongPass,          ///< A pass that asks much of every instruction or caller.
  Frequencies,       ///< The caller's block frequencies.
  CalleeFrequencies, ///< The callee's.
  Trial,             ///< Compiles of a function and of all its callers.
  CallerTrial,       ///< Compiles of the caller, where that did not settle it.
};

class SiteFeatures {
public:
  SiteFeatures(llvm::ModuleAnalysisManager &MAM,
               llvm::FunctionAnalysisManager &FAM,
               std::optional<ProgramSummary> Program,
               std::optional<Embeddings> Vocabulary);
  SiteFeatures(SiteFeatures &&);
  ~SiteFeatures();

  /// All that a policy may read: LLVM's in-tree features, then these, and behind
  /// them, if there is a vocabulary, the embeddings of callee and caller.
  std::vector<llvm::TensorSpec> offered() const;
  /// Whether \p Tensor, an index into offered(), is one of these.
  static bool has(size_t Tensor);

  /// From now on these are the features of a module of an unknown program.
  void dropSummary() { Program.reset(); }

  /// The price of \p Tensor, an index into offered().
  static Price priceOf(size_t Tensor);

  /// The value of \p Tensor, one of these, for the direct call \p CB.
  int64_t read(const llvm::CallBase &CB, size_t Tensor);
  /// The same for a log, for which nothing is tried: 0 if it was not read before.
  int64_t readAgain(const llvm::CallBase &CB, size_t Tensor) {
    Trials.tryNoMore();
    return read(CB, Tensor);
  }

  /// Whether \p Tensor needs estimateEntries() once, before \p M changes.
  static bool needsEntries(size_t Tensor);
  void estimateEntries(llvm::Module &M) { Runs.estimateEntries(M); }

  /// Whether \p Tensor is 0 until trials are allowed.
  static bool isOfTrial(size_t Tensor) { return isTrial(priceOf(Tensor)); }
  static bool isTrial(Price P) { return P == Price::Trial || P == Price::CallerTrial; }
  /// \p Folder: see KnownTrials.
  void allowTrials(llvm::Module &M, llvm::StringRef Folder) {
    Trials.allow(M, FAM, Folder);
  }
  /// To be called before each question.
  void onQuestion() { Trials.onQuestion(); }
  /// Whether features of the price \p P, that of a trial, can be other than 0 for \p CB.
  bool canTry(const llvm::CallBase &CB, Price P) {
    return P == Price::Trial ? extentOf(CB).Calls != 0 : Trials.canTryInCaller(CB);
  }

  /// To be called when any function may have changed.
  void clear();
  /// To be called after \p Callee was inlined into \p Caller.
  void onInlined(const llvm::Function &Caller, const llvm::Function &Callee);

private:
  struct Body;
  struct Uses;
  struct Site;
  struct Feature;
  static const Feature Table[];

  Body &bodyOf(const llvm::Function &F);
  int64_t codeSizeOf(const llvm::Function &F);
  Uses usesOf(const llvm::Function &F);
  const ProgramSummary::Function *inProgram(const llvm::Function &F) const;
  bool isOnlyUsedHere(const llvm::Function &F) const;
  const InliningTrials::Extent &extentOf(const llvm::CallBase &CB);
  InliningTrials::Result tryAllCalls(const llvm::CallBase &CB);
  const std::vector<int64_t> &embeddingOf(const llvm::Function &F);

  llvm::FunctionAnalysisManager &FAM;
  std::optional<ProgramSummary> Program;
  std::optional<Embeddings> Vocabulary;
  CallFrequencies Runs;
  QuestionTrials Trials;
  llvm::DenseMap<const llvm::Function *, std::unique_ptr<Body>> Bodies;
  llvm::DenseMap<const llvm::Function *, Uses> UsesOf;
  llvm::DenseMap<const llvm::Function *, std::vector<int64_t>> Embedded;
};

} // namespace nestor

#endif
