//===- FunctionCounts.cpp - What a function's machine code will be made of ===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "FunctionCounts.h"
#include "OpcodeHistogram.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Analysis/LoopInfo.h"
#include "llvm/Analysis/TargetTransformInfo.h"
#include "llvm/IR/DataLayout.h"
#include "llvm/IR/Dominators.h"
#include "llvm/IR/InlineAsm.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/Module.h"

using namespace llvm;

namespace nestor {

namespace {

struct Counts {
  // The nine of 2020.
  int64_t InitialSize = 0, Blocks = 0, Calls = 0, IsLocal = 0, IsLinkOnceODR = 0,
          IsLinkOnce = 0, Loops = 0, MaxLoopDepth = 0, MaxDomTreeLevel = 0;
  // The function.
  int64_t Arguments = 0, ReturnsValue = 0, MayThrow = 0, HasPersonality = 0,
          HasUnwindTable = 0, Instructions = 0;
  // The frame.
  int64_t AllocaBytes = 0, DynamicAllocas = 0;
  // Calls.
  int64_t RealCalls = 0, CallArguments = 0, StackArguments = 0,
          ConstantArguments = 0, GlobalArguments = 0, AllocaArguments = 0,
          IndirectCalls = 0, NoReturnCalls = 0, TailCalls = 0, ResultsUsed = 0,
          FreeIntrinsics = 0, MemoryIntrinsics = 0, MemoryIntrinsicBytes = 0,
          OtherIntrinsics = 0, InlineAsmCharacters = 0;
  // Exceptions.
  int64_t UnwindTargets = 0, Clauses = 0, Cleanups = 0;
  // Control.
  int64_t SwitchCases = 0, DenseSwitchCases = 0, ConditionalBranches = 0,
          FusedCompares = 0, UnfusedCompares = 0, PhiIncoming = 0,
          PhiConstants = 0, CriticalEdges = 0, FloatSelects = 0;
  // Types.
  int64_t Wide = 0, Words = 0, Narrow = 0, VeryWide = 0, Floats = 0, Doubles = 0,
          Vectors = 0, VectorBits = 0;
  // Operands.
  int64_t ConstantZeros = 0, ConstantBytes = 0, ConstantWords = 0,
          ConstantQuads = 0, ConstantFloats = 0, FunctionOperands = 0,
          GlobalOperands = 0, ThreadLocals = 0;
  // Addresses and what folds.
  int64_t FoldedLoads = 0, FoldedGeps = 0, ConstantGeps = 0, FarGeps = 0,
          VariableGeps = 0, ScaledGeps = 0, FreeCasts = 0, ShiftsByVariable = 0,
          MultipliesByConstant = 0, DividesByConstant = 0, Atomics = 0;
  // Lives.
  int64_t ValuesAcrossBlocks = 0, ValuesAcrossCalls = 0, MostLiveInBlock = 0;
};

struct Named {
  const char *Name;
  int64_t Counts::*Value;
};

} // namespace

static constexpr Named Table[] = {
    {"initial_size", &Counts::InitialSize},
    {"blocks", &Counts::Blocks},
    {"calls", &Counts::Calls},
    {"is_local", &Counts::IsLocal},
    {"is_linkonce_odr", &Counts::IsLinkOnceODR},
    {"is_linkonce", &Counts::IsLinkOnce},
    {"loops", &Counts::Loops},
    {"max_loop_depth", &Counts::MaxLoopDepth},
    {"max_dom_tree_level", &Counts::MaxDomTreeLevel},
    {"arguments", &Counts::Arguments},
    {"returns_value", &Counts::ReturnsValue},
    {"may_throw", &Counts::MayThrow},
    {"has_personality", &Counts::HasPersonality},
    {"has_unwind_table", &Counts::HasUnwindTable},
    {"instructions", &Counts::Instructions},
    {"alloca_bytes", &Counts::AllocaBytes},
    {"dynamic_allocas", &Counts::DynamicAllocas},
    {"real_calls", &Counts::RealCalls},
    {"call_arguments", &Counts::CallArguments},
    {"stack_arguments", &Counts::StackArguments},
    {"constant_arguments", &Counts::ConstantArguments},
    {"global_arguments", &Counts::GlobalArguments},
    {"alloca_arguments", &Counts::AllocaArguments},
    {"indirect_calls", &Counts::IndirectCalls},
    {"no_return_calls", &Counts::NoReturnCalls},
    {"tail_calls", &Counts::TailCalls},
    {"results_used", &Counts::ResultsUsed},
    {"free_intrinsics", &Counts::FreeIntrinsics},
    {"memory_intrinsics", &Counts::MemoryIntrinsics},
    {"memory_intrinsic_bytes", &Counts::MemoryIntrinsicBytes},
    {"other_intrinsics", &Counts::OtherIntrinsics},
    {"inline_asm_characters", &Counts::InlineAsmCharacters},
    {"unwind_targets", &Counts::UnwindTargets},
    {"clauses", &Counts::Clauses},
    {"cleanups", &Counts::Cleanups},
    {"switch_cases", &Counts::SwitchCases},
    {"dense_switch_cases", &Counts::DenseSwitchCases},
    {"conditional_branches", &Counts::ConditionalBranches},
    {"fused_compares", &Counts::FusedCompares},
    {"unfused_compares", &Counts::UnfusedCompares},
    {"phi_incoming", &Counts::PhiIncoming},
    {"phi_constants", &Counts::PhiConstants},
    {"critical_edges", &Counts::CriticalEdges},
    {"float_selects", &Counts::FloatSelects},
    {"wide", &Counts::Wide},
    {"words", &Counts::Words},
    {"narrow", &Counts::Narrow},
    {"very_wide", &Counts::VeryWide},
    {"floats", &Counts::Floats},
    {"doubles", &Counts::Doubles},
    {"vectors", &Counts::Vectors},
    {"vector_bits", &Counts::VectorBits},
    {"constant_zeros", &Counts::ConstantZeros},
    {"constant_bytes", &Counts::ConstantBytes},
    {"constant_words", &Counts::ConstantWords},
    {"constant_quads", &Counts::ConstantQuads},
    {"constant_floats", &Counts::ConstantFloats},
    {"function_operands", &Counts::FunctionOperands},
    {"global_operands", &Counts::GlobalOperands},
    {"thread_locals", &Counts::ThreadLocals},
    {"folded_loads", &Counts::FoldedLoads},
    {"folded_geps", &Counts::FoldedGeps},
    {"constant_geps", &Counts::ConstantGeps},
    {"far_geps", &Counts::FarGeps},
    {"variable_geps", &Counts::VariableGeps},
    {"scaled_geps", &Counts::ScaledGeps},
    {"free_casts", &Counts::FreeCasts},
    {"shifts_by_variable", &Counts::ShiftsByVariable},
    {"multiplies_by_constant", &Counts::MultipliesByConstant},
    {"divides_by_constant", &Counts::DividesByConstant},
    {"atomics", &Counts::Atomics},
    {"values_across_blocks", &Counts::ValuesAcrossBlocks},
    {"values_across_calls", &Counts::ValuesAcrossCalls},
    {"most_live_in_block", &Counts::MostLiveInBlock},
};

static void countFunctionItself(const Function &F, Counts &C) {
  C.IsLocal = F.hasLocalLinkage();
  C.IsLinkOnceODR = F.hasLinkOnceODRLinkage();
  C.IsLinkOnce = F.hasLinkOnceLinkage();
  C.Blocks = F.size();
  C.Arguments = F.arg_size();
  C.ReturnsValue = !F.getReturnType()->isVoidTy();
  C.MayThrow = !F.doesNotThrow();
  C.HasPersonality = F.hasPersonalityFn();
  C.HasUnwindTable = F.hasUWTable();
}

static void countGraph(Function &F, Counts &C) {
  DominatorTree Dominators(F);
  LoopInfo Loops(Dominators);
  C.Loops = std::distance(Loops.begin(), Loops.end());
  for (const Loop *L : Loops)
    C.MaxLoopDepth = std::max<int64_t>(C.MaxLoopDepth, L->getLoopDepth());
  for (const BasicBlock &BB : F)
    if (const auto *Node = Dominators.getNode(&BB))
      C.MaxDomTreeLevel = std::max<int64_t>(C.MaxDomTreeLevel, Node->getLevel());
}

/// The registers that x86-64 passes integers and pointers in.
constexpr unsigned ArgumentRegisters = 6;

static void countCall(const CallBase &CB, Counts &C) {
  ++C.Calls;
  if (CB.isInlineAsm()) {
    const auto *Asm = cast<InlineAsm>(CB.getCalledOperand());
    C.InlineAsmCharacters += Asm->getAsmString().size();
    return;
  }
  if (const auto *Memory = dyn_cast<MemIntrinsic>(&CB)) {
    ++C.MemoryIntrinsics;
    if (const auto *Length = dyn_cast<ConstantInt>(Memory->getLength()))
      C.MemoryIntrinsicBytes += Length->getValue().getLimitedValue(4096);
    return;
  }
  if (const auto *Intrinsic = dyn_cast<IntrinsicInst>(&CB)) {
    const bool Free = Intrinsic->isAssumeLikeIntrinsic();
    ++(Free ? C.FreeIntrinsics : C.OtherIntrinsics);
    return;
  }
  ++C.RealCalls;
  C.CallArguments += CB.arg_size();
  if (CB.arg_size() > ArgumentRegisters)
    C.StackArguments += CB.arg_size() - ArgumentRegisters;
  for (const Use &U : CB.args()) {
    const Value *V = U->stripInBoundsConstantOffsets();
    C.GlobalArguments += isa<GlobalValue>(V);
    C.ConstantArguments += isa<Constant>(V) && !isa<GlobalValue>(V);
    C.AllocaArguments += isa<AllocaInst>(V);
  }
  C.IndirectCalls += CB.isIndirectCall();
  C.NoReturnCalls += CB.doesNotReturn();
  C.ResultsUsed += !CB.use_empty();
  if (const auto *Call = dyn_cast<CallInst>(&CB))
    C.TailCalls += Call->isTailCall() && isa<ReturnInst>(Call->getNextNode());
}

static void countType(const Type *T, Counts &C) {
  C.Floats += T->isFloatTy();
  C.Doubles += T->isDoubleTy();
  if (const auto *Vector = dyn_cast<FixedVectorType>(T)) {
    ++C.Vectors;
    C.VectorBits += Vector->getPrimitiveSizeInBits().getFixedValue();
  }
  const unsigned Bits = T->isIntegerTy() ? T->getIntegerBitWidth() : 0;
  C.Wide += T->isPointerTy() || (Bits > 32 && Bits <= 64);
  C.Words += Bits > 16 && Bits <= 32;
  C.Narrow += Bits > 0 && Bits <= 16;
  C.VeryWide += Bits > 64;
}

static void countOperand(const Value &V, Counts &C) {
  if (const auto *Number = dyn_cast<ConstantInt>(&V)) {
    const APInt &N = Number->getValue();
    ++(N.isZero()            ? C.ConstantZeros
       : N.isSignedIntN(8)   ? C.ConstantBytes
       : N.isSignedIntN(32)  ? C.ConstantWords
                             : C.ConstantQuads);
  } else if (isa<ConstantPointerNull>(V)) {
    ++C.ConstantZeros;
  } else if (isa<ConstantFP>(V)) {
    ++C.ConstantFloats;
  } else if (isa<Function>(V)) {
    ++C.FunctionOperands;
  } else if (const auto *Global = dyn_cast<GlobalValue>(&V)) {
    ++C.GlobalOperands;
    C.ThreadLocals += Global->isThreadLocal();
  }
}

static bool isUsedOnlyHere(const Instruction &I) {
  return I.hasOneUse() &&
         cast<Instruction>(*I.user_begin())->getParent() == I.getParent();
}

/// Offsets beyond this need four bytes instead of one.
constexpr int64_t NearOffset = 127;

static void countAddress(const GetElementPtrInst &Gep, Counts &C) {
  APInt Offset(64, 0);
  if (Gep.accumulateConstantOffset(Gep.getDataLayout(), Offset)) {
    ++C.ConstantGeps;
    C.FarGeps += Offset.getSExtValue() > NearOffset || Offset.getSExtValue() < -NearOffset;
  } else {
    ++C.VariableGeps;
    const uint64_t Size =
        Gep.getDataLayout().getTypeAllocSize(Gep.getResultElementType());
    C.ScaledGeps += Size > 8 || (Size & (Size - 1)) != 0;
  }
  C.FoldedGeps += llvm::all_of(Gep.users(), [&](const User *U) {
    const auto *User = cast<Instruction>(U);
    return User->getParent() == Gep.getParent() &&
           getLoadStorePointerOperand(User) == &Gep;
  });
}

static void countInstruction(const Instruction &I, Counts &C) {
  const DataLayout &DL = I.getDataLayout();
  countType(I.getType()->isVoidTy() && I.getNumOperands()
                ? I.getOperand(0)->getType()
                : I.getType(),
            C);
  C.Atomics += I.isAtomic();
  if (const auto *CB = dyn_cast<CallBase>(&I)) {
    countCall(*CB, C);
    if (isa<IntrinsicInst>(CB) && cast<IntrinsicInst>(CB)->isAssumeLikeIntrinsic())
      return;
  }
  for (const Value *V : I.operands())
    countOperand(*V, C);
  if (const auto *Alloca = dyn_cast<AllocaInst>(&I)) {
    const auto Size = Alloca->getAllocationSize(DL);
    if (Alloca->isStaticAlloca() && Size && !Size->isScalable())
      C.AllocaBytes += std::min<uint64_t>(Size->getFixedValue(), 1 << 30);
    else
      ++C.DynamicAllocas;
  } else if (const auto *Pad = dyn_cast<LandingPadInst>(&I)) {
    C.Clauses += Pad->getNumClauses();
    C.Cleanups += Pad->isCleanup();
    ++C.UnwindTargets;
  } else if (const auto *Switch = dyn_cast<SwitchInst>(&I)) {
    C.SwitchCases += Switch->getNumCases();
    C.DenseSwitchCases += Switch->getNumCases() >= 4 ? Switch->getNumCases() : 0;
  } else if (const auto *Branch = dyn_cast<BranchInst>(&I)) {
    C.ConditionalBranches += Branch->isConditional();
  } else if (isa<CmpInst>(I)) {
    const bool Fused = isUsedOnlyHere(I) && isa<BranchInst, SelectInst>(*I.user_begin());
    ++(Fused ? C.FusedCompares : C.UnfusedCompares);
  } else if (const auto *Phi = dyn_cast<PHINode>(&I)) {
    C.PhiIncoming += Phi->getNumIncomingValues();
    C.PhiConstants += llvm::count_if(Phi->operands(), [](const Use &U) {
      return isa<Constant>(U);
    });
  } else if (isa<SelectInst>(I)) {
    C.FloatSelects += I.getType()->isFPOrFPVectorTy();
  } else if (const auto *Load = dyn_cast<LoadInst>(&I)) {
    C.FoldedLoads += Load->isSimple() && isUsedOnlyHere(I) &&
                     isa<BinaryOperator, CmpInst, CastInst>(*I.user_begin());
  } else if (const auto *Gep = dyn_cast<GetElementPtrInst>(&I)) {
    countAddress(*Gep, C);
  } else if (const auto *Cast = dyn_cast<CastInst>(&I)) {
    C.FreeCasts += Cast->isNoopCast(DL) || isa<TruncInst>(Cast);
  } else if (isa<BinaryOperator>(I)) {
    const bool Constant = isa<ConstantInt>(I.getOperand(1));
    C.ShiftsByVariable += I.isShift() && !Constant;
    C.MultipliesByConstant += I.getOpcode() == Instruction::Mul && Constant;
    C.DividesByConstant += I.isIntDivRem() && Constant;
  }
}

/// What a block's values ask of the registers: how many outlive it, how many live
/// across a call in it, how many live at once.
static void countLives(const BasicBlock &BB, Counts &C) {
  DenseMap<const Value *, unsigned> Ends; // Of what ends here: the last use.
  unsigned Place = 0;
  for (const Instruction &I : BB) {
    ++Place;
    for (const Value *V : I.operands())
      if (const auto *Def = dyn_cast<Instruction>(V); Def && Def->getParent() == &BB)
        Ends[Def] = Place;
  }
  const unsigned Last = Place + 1;
  std::vector<int64_t> Ending(Last + 1);
  SmallVector<std::pair<unsigned, unsigned>, 32> Spans;
  SmallVector<unsigned, 16> CallPlaces;
  int64_t Live = 0;
  Place = 0;
  for (const Instruction &I : BB) {
    ++Place;
    Live -= Ending[Place];
    const auto *CB = dyn_cast<CallBase>(&I);
    if (CB && !isa<IntrinsicInst>(CB) && !CB->isInlineAsm())
      CallPlaces.push_back(Place);
    if (I.getType()->isVoidTy() || isa<AllocaInst>(I))
      continue;
    const bool Outlives = I.isUsedOutsideOfBlock(&BB);
    C.ValuesAcrossBlocks += Outlives;
    const unsigned End = Outlives ? Last : Ends.lookup(&I);
    if (!End)
      continue;
    Spans.push_back({Place, End});
    ++Live;
    ++Ending[End];
    C.MostLiveInBlock = std::max(C.MostLiveInBlock, Live);
  }
  for (auto [Begin, End] : Spans) {
    auto Next = llvm::upper_bound(CallPlaces, Begin);
    C.ValuesAcrossCalls += Next != CallPlaces.end() && *Next < End;
  }
}

std::vector<std::string> functionCountNames() {
  std::vector<std::string> Result;
  for (const Named &N : Table)
    Result.push_back(N.Name);
  OpcodeHistogram::appendNames(Result);
  return Result;
}

std::vector<int64_t> countFunction(Function &F, const TargetTransformInfo &TTI) {
  Counts C;
  countFunctionItself(F, C);
  countGraph(F, C);
  OpcodeHistogram Opcodes;
  InstructionCost Size = 0;
  for (const BasicBlock &BB : F) {
    for (const Instruction &I : BB) {
      ++C.Instructions;
      Opcodes.add(I.getOpcode());
      InstructionCost Cost =
          TTI.getInstructionCost(&I, TargetTransformInfo::TCK_CodeSize);
      if (Cost.isValid())
        Size += Cost;
      countInstruction(I, C);
    }
    countLives(BB, C);
    if (BB.getTerminator()->getNumSuccessors() > 1)
      C.CriticalEdges += llvm::count_if(successors(&BB), [](const BasicBlock *To) {
        return !To->getSinglePredecessor();
      });
  }
  C.InitialSize = Size.getValue(); // The sum saturates.
  std::vector<int64_t> Result;
  for (const Named &N : Table)
    Result.push_back(C.*N.Value);
  Opcodes.appendCounts(Result);
  return Result;
}

} // namespace nestor
