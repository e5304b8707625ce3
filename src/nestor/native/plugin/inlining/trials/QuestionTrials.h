//===- QuestionTrials.h - What is tried for one question ------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NESTOR_QUESTIONTRIALS_H
#define NESTOR_QUESTIONTRIALS_H

#include "InliningTrials.h"
#include "llvm/ADT/STLFunctionalExtras.h"

namespace nestor {

/// Inlining trials for the question that is open: each once, when its result is asked for.
class QuestionTrials {
public:
  /// Until then every result is 0. \p Folder: see KnownTrials.
  void allow(llvm::Module &M, llvm::FunctionAnalysisManager &FAM, llvm::StringRef Folder) {
    Trials.emplace(M, FAM, Folder);
  }
  /// To be called before each question.
  void onQuestion() { Known = {}; }
  /// See InliningTrials.
  void clear() {
    if (Trials)
      Trials->clear();
  }
  void onInlined(const llvm::Function &Caller, const llvm::Function &Callee) {
    if (Trials)
      Trials->onInlined(Caller, Callee);
  }
  /// From now on, and until the next question, what was not tried is 0.
  void tryNoMore() { Known.MayTry = false; }

  /// What there is to try of all calls of the callee of \p CB, if \p GoesAway: the program
  /// does without it when nothing here refers to it.
  const InliningTrials::Extent &extent(const llvm::CallBase &CB,
                                       llvm::function_ref<bool()> GoesAway);
  InliningTrials::Result ofAllCalls(const llvm::CallBase &CB,
                                    llvm::function_ref<bool()> GoesAway);
  bool canTryInCaller(const llvm::CallBase &CB);
  InliningTrials::Result inCaller(const llvm::CallBase &CB);

private:
  std::optional<InliningTrials> Trials;
  struct {
    bool MayTry = true;
    std::optional<InliningTrials::Candidate> Candidate;
    std::optional<bool> CanTryInCaller; ///< It takes a pass over both functions.
    std::optional<InliningTrials::Result> AllCalls, InCaller;
  } Known;
};

} // namespace nestor

#endif
