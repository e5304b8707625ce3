//===- Counts.h - The counts of one function ------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NESTOR_COUNTS_H
#define NESTOR_COUNTS_H

#include "llvm/ADT/ArrayRef.h"
#include <cstdint>

namespace llvm {
class Instruction;
} // namespace llvm

namespace nestor {

/// docs/studies/size-estimator.md explains each, under its name in the log.
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

struct NamedCount {
  const char *Name; ///< In the log.
  int64_t Counts::*Value;
};

/// All counts, in the order of the log.
llvm::ArrayRef<NamedCount> namedCounts();

/// Adds \p I to the counts of calls, exceptions, control, types, operands,
/// addresses and what folds.
void countInstruction(const llvm::Instruction &I, Counts &C);

} // namespace nestor

#endif
