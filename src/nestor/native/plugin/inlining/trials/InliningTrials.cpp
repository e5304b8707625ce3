//===- InliningTrials.cpp - What inlining all calls of a function saves ---===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "InliningTrials.h"
#include "Extract.h"
#include "plugin/core/StableIDs.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Analysis/InlineCost.h"
#include "llvm/Analysis/TargetLibraryInfo.h"
#include "llvm/Analysis/TargetTransformInfo.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/Support/xxhash.h"

using namespace llvm;

namespace nestor {

// More is not even looked at. What is tried within, the policy says.
constexpr InliningTrials::Extent Most{/*Calls=*/16, /*Copied=*/200, /*Instructions=*/3000};
/// What inlining a call takes off its caller, roughly: the call and what it needs.
constexpr int64_t CallBytes = 16;

static bool canCopy(const Function &F) {
  return F.hasName() && !F.hasAvailableExternallyLinkage() && !F.isPresplitCoroutine() &&
         !F.hasPrefixData() && !F.hasPrologueData() &&
         llvm::none_of(F, [](const BasicBlock &BB) { return BB.hasAddressTaken(); });
}

bool InliningTrials::canInline(CallBase &CB, Function &Callee) {
  auto TLI = [&](Function &F) -> const TargetLibraryInfo & {
    return FAM.getResult<TargetLibraryAnalysis>(F);
  };
  // A decision by attributes may be "always"; such a call is not left to anyone.
  return !CB.isMustTailCall() &&
         CB.getFunctionType() == Callee.getFunctionType() &&
         !getAttributeBasedInliningDecision(
             CB, &Callee, FAM.getResult<TargetIRAnalysis>(Callee), TLI);
}

/// Whether \p Callee calls a function that calls it: once one is inlined into the other, what
/// is done elsewhere is another question.
static bool callsBack(const Function &Callee,
                      const SmallMapVector<Function *, unsigned, 4> &Callers) {
  return llvm::any_of(instructions(Callee), [&](const Instruction &I) {
    const auto *CB = dyn_cast<CallBase>(&I);
    return CB && CB->getCalledFunction() && Callers.count(CB->getCalledFunction());
  });
}

/// The functions that call \p Callee and how often, small ones first. The order of uses is none:
/// bitcode does not keep it.
std::optional<InliningTrials::Callers> InliningTrials::callersOf(Function &Callee) {
  if (Callee.hasNUsesOrMore(Most.Calls + 1) || !canCopy(Callee))
    return std::nullopt;
  const int64_t Own = Callee.getInstructionCount();
  Extent All{0, -Own, Own};
  SmallMapVector<Function *, unsigned, 4> Found;
  for (Use &U : Callee.uses()) {
    auto *CB = dyn_cast<CallBase>(U.getUser());
    if (!CB || !CB->isCallee(&U) || CB->getCaller() == &Callee)
      return std::nullopt;
    if (!Found[CB->getCaller()]++)
      All.Instructions += CB->getCaller()->getInstructionCount();
    ++All.Calls;
    All.Copied += Own;
    if (All.Copied > Most.Copied || All.Instructions > Most.Instructions)
      return std::nullopt;
  }
  for (User *U : Callee.users())
    if (!canInline(*cast<CallBase>(U), Callee))
      return std::nullopt;
  if (callsBack(Callee, Found) ||
      !llvm::all_of(Found, [](const auto &C) { return canCopy(*C.first); }))
    return std::nullopt;
  Callers Sorted{Found.takeVector(), All};
  llvm::sort(Sorted.Functions, [](const auto &A, const auto &B) {
    return std::pair(A.first->getInstructionCount(), A.first->getName()) <
           std::pair(B.first->getInstructionCount(), B.first->getName());
  });
  return Sorted;
}

InliningTrials::Extent InliningTrials::extentOf(Function &Callee) {
  if (auto It = Tried.find(functionID(Callee)); It != Tried.end())
    return It->second.first;
  const std::optional<Callers> Found = callersOf(Callee);
  return Found ? Found->All : Extent();
}

InliningTrials::Result InliningTrials::of(Function &Callee) {
  const uint64_t ID = functionID(Callee);
  if (auto It = Tried.find(ID); It != Tried.end())
    return It->second.second;
  const std::optional<Callers> Found = callersOf(Callee);
  if (!Found)
    return {};
  const Result R = tryAll(Callee, *Found);
  Tried[ID] = {Found->All, R};
  return R;
}

InliningTrials::Result InliningTrials::tryAll(Function &Callee, const Callers &Found) {
  const std::optional<int64_t> Own = bytesOf({&Callee}, nullptr);
  if (!Own)
    return {};
  Result R{*Own, *Own};
  int64_t Left = Found.All.Calls;
  for (const auto &[Caller, Calls] : Found.Functions) {
    if (R.Saved + Left * CallBytes < 0)
      break; // It costs too much already.
    const auto Apart = bytesOf({Caller}, nullptr);
    const auto Inlined = bytesOf({Caller, &Callee}, &Callee);
    if (!Apart || !Inlined)
      return {};
    R.Apart += *Apart;
    R.Saved -= *Inlined - *Apart;
    Left -= Calls;
  }
  return R;
}

/// Bytes of the first of \p Functions.
std::optional<int64_t> InliningTrials::bytesOf(ArrayRef<const Function *> Functions,
                                               const Function *Inlined) {
  const Function &F = *Functions.front();
  const std::unique_ptr<Module> M = extract(Functions);
  std::string Text; // Bitcode also tells which kinds of metadata the compiler knows.
  raw_string_ostream(Text) << *M;
  const auto Hash = xxh3_128bits(arrayRefFromStringRef(Text));
  const KnownSizes::Key Key(Hash.high64, Hash.low64);
  if (const KnownSizes::Size *Known = Sizes.find(Key))
    return *Known;
  if (!Compiler)
    Compiler.emplace(*F.getParent());
  return Sizes.note(
      Key, Compiler->of(*M, Inlined ? Inlined->getName() : "", F.hasMinSize()));
}

} // namespace nestor
