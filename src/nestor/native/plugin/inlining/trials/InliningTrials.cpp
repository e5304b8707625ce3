//===- InliningTrials.cpp - What inlining calls of a function saves -------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "InliningTrials.h"
#include "Extract.h"
#include "plugin/core/StableIDs.h"
#include "plugin/inlining/SiteKeys.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Analysis/InlineCost.h"
#include "llvm/Analysis/TargetLibraryInfo.h"
#include "llvm/Analysis/TargetTransformInfo.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/xxhash.h"

using namespace llvm;

namespace nestor {

// More is not even looked at. What is tried within, the policy says.
constexpr InliningTrials::Extent Most{/*Calls=*/16, /*Copied=*/200, /*Instructions=*/3000};
/// Of one function, as others come to call it.
constexpr unsigned MostTimes = 3;
/// What inlining a call takes off its caller, roughly: the call and what it needs.
constexpr int64_t CallBytes = 16;

/// Instructions that are compiled on trial in a module: so many for each of its own, and some
/// more where it is small. The packaged policies ask for up to 27 for each.
constexpr int64_t MostPerInstruction = 40, MostBesides = 20000;

InliningTrials::InliningTrials(Module &M, FunctionAnalysisManager &FAM, StringRef Folder)
    : FAM(FAM), Left(MostPerInstruction * M.getInstructionCount() + MostBesides),
      Kept(Folder, M) {
  // Bitcode says which kinds of metadata the compiler knows. These become known when a log is
  // written and when a call is first inlined, so the trials of before could not be found again.
  for (StringRef Kind : {StringRef(SiteKeyMetadata), StringRef("heapallocsite")})
    M.getMDKindID(Kind);
}

static bool canCopy(const Function &F) {
  return F.hasName() && !F.hasAvailableExternallyLinkage() && !F.isPresplitCoroutine() &&
         !F.hasPrefixData() && !F.hasPrologueData() &&
         llvm::none_of(F, [](const BasicBlock &BB) { return BB.hasAddressTaken(); });
}

int64_t InliningTrials::instructionsOf(const Function &F) {
  const auto [It, IsNew] = Counts.try_emplace(&F);
  if (IsNew)
    It->second = F.getInstructionCount();
  return It->second;
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

/// Whether \p Callee calls one of \p Functions. Once a function is inlined into one that it
/// calls, what is done elsewhere is another question.
static bool callsOneOf(const Function &Callee,
                       function_ref<bool(const Function *)> Functions) {
  return llvm::any_of(instructions(Callee), [&](const Instruction &I) {
    const auto *CB = dyn_cast<CallBase>(&I);
    return CB && CB->getCalledFunction() && Functions(CB->getCalledFunction());
  });
}

/// Finds the functions that call C.Callee and how often, small ones first. The order of uses
/// is none: bitcode does not keep it. False if there is nothing to try.
bool InliningTrials::findCallers(Candidate &C) {
  Function &Callee = *C.Callee;
  if (Callee.hasNUsesOrMore(Most.Calls + 1) || !canCopy(Callee))
    return false;
  const int64_t Own = instructionsOf(Callee);
  Extent All{0, -Own, Own};
  SmallMapVector<Function *, unsigned, 4> Found;
  for (Use &U : Callee.uses()) {
    auto *CB = dyn_cast<CallBase>(U.getUser());
    if (!CB || !CB->isCallee(&U) || CB->getCaller() == &Callee)
      return false;
    if (!Found[CB->getCaller()]++)
      All.Instructions += instructionsOf(*CB->getCaller());
    ++All.Calls;
    All.Copied += Own;
    if (All.Copied > Most.Copied || All.Instructions > Most.Instructions)
      return false;
  }
  if (callsOneOf(Callee, [&](const Function *F) {
        return Found.count(const_cast<Function *>(F));
      }) ||
      !llvm::all_of(Found, [](const auto &C) { return canCopy(*C.first); }))
    return false;
  for (User *U : Callee.users())
    if (!canInline(*cast<CallBase>(U), Callee))
      return false;
  C.All = All;
  C.Callers = Found.takeVector();
  auto Place = [&](const Function &F) { return std::pair(instructionsOf(F), F.getName()); };
  llvm::sort(C.Callers,
             [&](const auto &A, const auto &B) { return Place(*A.first) < Place(*B.first); });
  return true;
}

InliningTrials::Candidate InliningTrials::candidate(const CallBase &CB) {
  Candidate C;
  C.Callee = CB.getCalledFunction();
  const auto It = Tried.find(functionID(*C.Callee));
  if (It == Tried.end()) {
    findCallers(C);
  } else if (llvm::is_contained(It->second.Callers, functionID(*CB.getCaller()))) {
    C.All = It->second.All;
    C.Known = It->second.R;
  } else if (It->second.Times < MostTimes) {
    findCallers(C);
  }
  return C;
}

InliningTrials::Result InliningTrials::of(const Candidate &C) {
  if (C.Known || !C.All.Calls || isSpent())
    return C.Known.value_or(Result());
  Trial &T = Tried[functionID(*C.Callee)];
  T.R = tryAll(C);
  T.All = C.All;
  ++T.Times;
  for (const auto &Caller : C.Callers)
    T.Callers.push_back(functionID(*Caller.first));
  return T.R;
}

InliningTrials::Result InliningTrials::tryAll(const Candidate &C) {
  SmallVector<const Function *, 4> Functions = {C.Callee};
  for (const auto &Caller : C.Callers)
    Functions.push_back(Caller.first);
  return known(Functions, Kind::AllCalls, [&] { return compileAll(C); });
}

InliningTrials::Result InliningTrials::compileAll(const Candidate &C) {
  Function &Callee = *C.Callee;
  const std::optional<int64_t> Own = bytesOf({&Callee}, nullptr);
  if (!Own)
    return {};
  Result R{*Own, *Own};
  int64_t CallsLeft = C.All.Calls;
  for (const auto &[Caller, Calls] : C.Callers) {
    if (R.Saved + CallsLeft * CallBytes < 0)
      break; // It costs too much already.
    const std::optional<Result> One = compileOne(*Caller, Callee);
    if (!One)
      return {};
    R.Apart += One->Apart;
    R.Saved += One->Saved;
    CallsLeft -= Calls;
  }
  return R;
}

bool InliningTrials::canTryInCaller(CallBase &CB) {
  Function &Caller = *CB.getCaller(), &Callee = *CB.getCalledFunction();
  const int64_t Own = instructionsOf(Callee);
  if (isSpent() || Own + instructionsOf(Caller) > Most.Instructions ||
      !canCopy(Caller) || !canCopy(Callee))
    return false;
  int64_t Calls = 0;
  for (Instruction &I : instructions(Caller))
    if (auto *Call = dyn_cast<CallBase>(&I); Call && Call->getCalledFunction() == &Callee)
      if (!canInline(*Call, Callee) || ++Calls > Most.Calls || Calls * Own > Most.Copied)
        return false;
  return &Caller != &Callee && !callsOneOf(Callee, [&](const Function *F) {
           return F == &Caller || F == &Callee;
         });
}

InliningTrials::Result InliningTrials::inCaller(const CallBase &CB) {
  const Function &Caller = *CB.getCaller(), &Callee = *CB.getCalledFunction();
  return known({&Callee, &Caller}, Kind::InCaller,
               [&] { return compileOne(Caller, Callee).value_or(Result()); });
}

/// What \p Caller takes, and what of it goes with all its calls of \p Callee inlined.
std::optional<InliningTrials::Result>
InliningTrials::compileOne(const Function &Caller, const Function &Callee) {
  const auto Apart = bytesOf({&Caller}, nullptr);
  const auto Inlined = bytesOf({&Caller, &Callee}, &Callee);
  if (!Apart || !Inlined)
    return std::nullopt;
  return Result{*Apart, *Apart - *Inlined};
}

static KnownTrials::Key hash(ArrayRef<char> Bytes) {
  const auto Hash = xxh3_128bits(arrayRefFromStringRef(StringRef(Bytes.data(), Bytes.size())));
  return {Hash.high64, Hash.low64};
}

/// What \p Compile finds of \p Functions, the callee first, or an earlier compile has found of
/// the same. It costs as many instructions either way, so that the answers are the same.
InliningTrials::Result InliningTrials::known(ArrayRef<const Function *> Functions, Kind Is,
                                             function_ref<Result()> Compile) {
  SmallVector<char, 0> Bytes = extract(Functions);
  Bytes.push_back(char(Is));
  const KnownTrials::Key Key = hash(Bytes);
  if (const KnownTrials::Trial *T = Kept.find(Key)) {
    Left -= T->Compiled;
    return {T->Apart, T->Saved};
  }
  const int64_t Before = Left;
  const Result R = Compile();
  Kept.note(Key, {R.Apart, R.Saved, Before - Left});
  return R;
}

/// Bytes of the first of \p Functions.
std::optional<int64_t> InliningTrials::bytesOf(ArrayRef<const Function *> Functions,
                                               const Function *Inlined) {
  const Function &F = *Functions.front();
  for (const Function *Each : Functions)
    Left -= Each->getInstructionCount();
  const SmallVector<char, 0> Bitcode = extract(Functions);
  const auto [It, IsNew] = Sizes.try_emplace(hash(Bitcode));
  if (!IsNew)
    return It->second;
  if (!Compiler)
    Compiler.emplace(*F.getParent());
  const MemoryBufferRef Bytes(StringRef(Bitcode.data(), Bitcode.size()), "trial");
  It->second = Compiler->of(Bytes, Inlined ? Inlined->getName() : "", F.hasMinSize());
  return It->second;
}

} // namespace nestor
