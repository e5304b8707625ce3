//===- InliningTrials.h - What inlining all calls of a function saves -----===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// How much smaller a program becomes when a function goes away, since its few calls are
// inlined, hangs on what the optimiser and the register allocator make of the copies. No
// feature of the IR says it, so the compiler tries it: it compiles the functions in question
// both ways and counts bytes. (Inlining trials: Dean and Chambers, "Towards better inlining
// decisions using inlining trials", LFP 1994.)
//
//===----------------------------------------------------------------------===//

#ifndef NESTOR_INLININGTRIALS_H
#define NESTOR_INLININGTRIALS_H

#include "CodeBytes.h"
#include "KnownSizes.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/IR/Function.h"
#include "llvm/IR/PassManager.h"
#include <map>
#include <optional>
#include <utility>

namespace nestor {

class InliningTrials {
public:
  /// Trials of functions of \p M. \p Folder: see KnownSizes.
  InliningTrials(llvm::Module &M, llvm::FunctionAnalysisManager &FAM,
                 llvm::StringRef Folder)
      : FAM(FAM), Sizes(Folder, M) {}

  /// How much there is to try.
  struct Extent {
    int64_t Calls = 0;
    int64_t Copied = 0;       ///< Instructions of the callee in all calls but one.
    int64_t Instructions = 0; ///< Of the callee and of all callers.
  };
  struct Result {
    int64_t Apart = 0; ///< Bytes of the callee and of the callers that were tried.
    /// What of it goes when all calls are inlined. It may be negative; the other callers are
    /// not tried then.
    int64_t Saved = 0;
    int64_t savedPermille() const { return Apart ? Saved * 1000 / Apart : 0; }
  };

  /// All zero if something other than direct calls refers to \p Callee, if a call cannot be
  /// inlined, or if there is more than anyone would try. Once it was tried it is what it was
  /// then.
  Extent extentOf(llvm::Function &Callee);

  /// Tries \p Callee, which goes away when nothing here refers to it any more; once, so that
  /// the answer is the same for all of its calls. All zero if it cannot be tried.
  Result of(llvm::Function &Callee);

private:
  struct Callers {
    llvm::SmallVector<std::pair<llvm::Function *, unsigned>, 4> Functions; ///< And their calls.
    Extent All;
  };
  bool canInline(llvm::CallBase &CB, llvm::Function &Callee);
  std::optional<Callers> callersOf(llvm::Function &Callee);
  Result tryAll(llvm::Function &Callee, const Callers &Found);
  std::optional<int64_t> bytesOf(llvm::ArrayRef<const llvm::Function *> Functions,
                                 const llvm::Function *Inlined);

  llvm::FunctionAnalysisManager &FAM;
  std::optional<CodeBytes> Compiler;
  std::map<uint64_t, std::pair<Extent, Result>> Tried; ///< By the function's id.
  KnownSizes Sizes; ///< A caller of one function calls others too.
};

} // namespace nestor

#endif
