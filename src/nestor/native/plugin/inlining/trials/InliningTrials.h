//===- InliningTrials.h - What inlining calls of a function saves ---------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// How much smaller a program becomes when a function goes away, since its few calls are
// inlined, hangs on what the optimiser and the register allocator make of the copies; so does
// whether a caller shrinks when its calls of a function are inlined that stays. No feature of
// the IR says it, so the compiler tries it: it compiles the functions in question both ways
// and counts bytes. (Inlining trials: Dean and Chambers, "Towards better inlining
// decisions using inlining trials", LFP 1994.)
//
//===----------------------------------------------------------------------===//

#ifndef NESTOR_INLININGTRIALS_H
#define NESTOR_INLININGTRIALS_H

#include "CodeBytes.h"
#include "KnownTrials.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/IR/Function.h"
#include "llvm/IR/PassManager.h"
#include <map>
#include <optional>
#include <utility>

namespace nestor {

class InliningTrials {
public:
  /// Trials of functions of \p M. \p Folder: see KnownTrials.
  InliningTrials(llvm::Module &M, llvm::FunctionAnalysisManager &FAM,
                 llvm::StringRef Folder);

  /// How much there is to try.
  struct Extent {
    int64_t Calls = 0;
    int64_t Copied = 0;       ///< Instructions of the callee in all calls but one.
    int64_t Instructions = 0; ///< Of the callee and of all callers.
  };
  struct Result {
    int64_t Apart = 0; ///< Bytes of the functions that were tried, each by itself.
    /// What of it goes when the calls are inlined. It may be negative; the other callers are
    /// not tried then.
    int64_t Saved = 0;
    int64_t savedPermille() const { return Apart ? Saved * 1000 / Apart : 0; }
  };
  /// A function that goes away when nothing here refers to it any more.
  struct Candidate {
    llvm::Function *Callee = nullptr;
    llvm::SmallVector<std::pair<llvm::Function *, unsigned>, 4> Callers; ///< And their calls.
    Extent All; ///< All zero if something other than direct calls refers to it, if a call
                ///< cannot be inlined, or if there is more than anyone would try.
    std::optional<Result> Known; ///< Of an earlier trial, which holds, as its extent does.
  };

  /// The callee of \p CB. An earlier trial holds for the calls in its callers, so that their
  /// answers are the same. Another function may have come to call the callee since; then
  /// there is another trial, since what is saved in some callers is not saved in others.
  Candidate candidate(const llvm::CallBase &CB);
  /// Tries \p C if there is something to try.
  Result of(const Candidate &C);

  /// To be called when any function may have changed, apart from inlining.
  void clear() { Counts.clear(); }
  /// To be called after a call was inlined into \p Caller. A deleted callee is as good as changed.
  void onInlined(const llvm::Function &Caller, const llvm::Function &Callee) {
    Counts.erase(&Caller);
    Counts.erase(&Callee);
  }

  /// Whether nothing more is tried in this module, so that no policy makes a compile endless.
  bool isSpent() const { return Left < 0; }

  /// Whether the calls of a function in the caller of \p CB, one of them, can be tried alone.
  bool canTryInCaller(llvm::CallBase &CB);
  /// What the caller of \p CB saves once all its calls of this callee are inlined; the callee
  /// stays as it is. canTryInCaller() must be true.
  Result inCaller(const llvm::CallBase &CB);

private:
  struct Trial {
    llvm::SmallVector<uint64_t, 4> Callers; ///< Their ids.
    Extent All;
    Result R;
    unsigned Times = 0;
  };
  int64_t instructionsOf(const llvm::Function &F);
  bool canInline(llvm::CallBase &CB, llvm::Function &Callee);
  bool findCallers(Candidate &C);
  Result tryAll(const Candidate &C);
  Result compileAll(const Candidate &C);
  std::optional<Result> compileOne(const llvm::Function &Caller, const llvm::Function &Callee);
  enum class Kind : char { AllCalls, InCaller };
  Result known(llvm::ArrayRef<const llvm::Function *> Functions, Kind Is,
               llvm::function_ref<Result()> Compile);
  std::optional<int64_t> bytesOf(llvm::ArrayRef<const llvm::Function *> Functions,
                                 const llvm::Function *Inlined);

  llvm::FunctionAnalysisManager &FAM;
  std::optional<CodeBytes> Compiler;
  int64_t Left; ///< Instructions that may still be compiled, whether or not they are known.
  std::map<uint64_t, Trial> Tried; ///< By the function's id.
  /// Of functions as they are. Each question wants those of up to 16 callers.
  llvm::DenseMap<const llvm::Function *, int64_t> Counts;
  KnownTrials Kept;
  /// By a hash of what was compiled, since a caller of one function calls others too.
  std::map<KnownTrials::Key, std::optional<int64_t>> Sizes;
};

} // namespace nestor

#endif
