//===- InstructionCounts.cpp - What an instruction adds to the counts -----===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Counts.h"
#include "plugin/Compat.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/IR/DataLayout.h"
#include "llvm/IR/InlineAsm.h"
#include "llvm/IR/IntrinsicInst.h"

using namespace llvm;

namespace nestor {

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

void countInstruction(const Instruction &I, Counts &C) {
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
  } else if (isBranch(I)) {
    C.ConditionalBranches += isConditionalBranch(I);
  } else if (isa<CmpInst>(I)) {
    const bool Fused = isUsedOnlyHere(I) && (isBranch(**I.user_begin()) ||
                                             isa<SelectInst>(*I.user_begin()));
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

} // namespace nestor
