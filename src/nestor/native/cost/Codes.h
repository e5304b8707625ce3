// The numbers that templates and the simulated core share with Python.
//
// Each list is written once, as a macro, for the enumeration and for Layout.cpp, which hands it to
// Python: nestor/cost/native/layout.py compares it with Python's own when the library is loaded.
#pragma once
#include <cstdint>

namespace nestor {

// Register numbers: 0-15 general, 16-47 vector, 48-55 x87 and MMX, 56-63 mask, then flags in the
// three groups that AMD renames apart.
#define NESTOR_REGISTER_NUMBERS(X)                                                              \
  X(RSP, 4) X(Vector, 16) X(Stack, 48) X(Mask, 56) X(Carry, 64) X(Overflow, 65) X(Zero, 66)       \
  X(Registers, 67) X(None, 255)

// Properties of an instruction that follow from its encoding; a set.
//   ZeroIdiom         the same register twice: the result is 0 and nothing is executed
//   BreaksDependency  the same register twice: executed, but waits for nothing
//   ElidedMove        a copy between registers that renaming can do
//   AddressOnly       lea, nop: the memory operand is not accessed
//   VectorIndex       gather and scatter
//   VectorOp          the load goes to the floating-point side
//   StackOp           push or pop
//   Extends           movzx, movsx
#define NESTOR_TRAITS(X)                                                                         \
  X(ZeroIdiom, 1) X(BreaksDependency, 2) X(ElidedMove, 4) X(AddressOnly, 8) X(VectorIndex, 16)    \
  X(VectorOp, 32) X(StackOp, 64) X(Extends, 128)

#define NESTOR_ACCESSES(X) X(Reads, 1) X(Writes, 2)

// Where an operand is encoded: nowhere (the end of the list), fields of the instruction, a register
// that the opcode implies, memory, an immediate, or something that the model does not look at.
#define NESTOR_PLACES(X)                                                                         \
  X(Absent, 0) X(Reg, 1) X(Rm, 2) X(Vvvv, 3) X(OpcodeField, 4) X(Is4, 5) X(Fixed, 6) X(InMemory, 7) \
  X(InImmediate, 8) X(Elsewhere, 9)

#define NESTOR_REGISTER_CLASSES(X)                                                               \
  X(General8, 0) X(General16, 1) X(General32, 2) X(General64, 3) X(VectorClass, 4) X(MmxClass, 5) \
  X(X87Class, 6) X(MaskClass, 7)

// Memory that an instruction accesses without a ModRM operand.
#define NESTOR_IMPLICIT_MEMORIES(X)                                                              \
  X(NoImplicit, 0) X(PushesStack, 1) X(PopsStack, 2) X(AtRdi, 3) X(AtRsi, 4) X(AtOffset, 5)       \
  X(LeavesFrame, 6)

// What an operation does to general registers, as far as addresses need it.
#define NESTOR_EMULATIONS(X)                                                                     \
  X(Unknown, 0) X(Nothing, 1) X(Move, 2) X(Add, 3) X(Sub, 4) X(And, 5) X(Or, 6) X(Xor, 7)         \
  X(Lea, 8) X(Inc, 9) X(Dec, 10) X(Neg, 11) X(Not, 12) X(Shl, 13) X(Shr, 14) X(Sar, 15)           \
  X(MoveZero, 16) X(MoveSign, 17) X(Push, 18) X(Pop, 19) X(Exchange, 20) X(Multiply, 21)          \
  X(Multiply3, 22) X(SignToRdx, 23) X(ByteSwap, 24) X(SignExtend, 25) X(Step, 26) X(SetBit, 27)

// The categories of instructions that the native side treats apart, and how many there are.
#define NESTOR_CATEGORIES(X) X(CategoryMov, 0) X(CategoryAlu, 4) X(CategoryShift, 6) X(Categories, 30)

#define NESTOR_DECODE_STATUSES(X) X(Decoded, 0) X(UnknownKey, 1) X(Undecodable, 2)

// Where a tree's node, 32 bits, holds its feature, the bin compared with, and its two children.
#define NESTOR_NODE_SHIFTS(X) X(FeatureShift, 0) X(BinShift, 8) X(LeftShift, 16) X(RightShift, 24)

// What training says of an instruction form (nestor/cost/model/trained_forms.py).
#define NESTOR_FORM_STATUSES(X) X(Untrained, 0) X(Trained, 1) X(Refused, 2) X(Borrowed, 3)

// The state that the measuring harness starts a block in: register i is FirstRegister + i times
// RegisterStep, but for the stack pointer; every eight bytes of a fresh page are PageFilling.
#define NESTOR_START_STATE(X)                                                                    \
  X(FirstRegister, 0x12345600) X(RegisterStep, 0x1010140) X(StackPointer, 0x22345800)             \
  X(PageFilling, 0x41234500)

#define NESTOR_LIMITS(X)                                                                         \
  X(Variants, 8)     /* parameter sets of one instruction form */                                \
  X(LargestWindow, 512) /* operations between dispatch and retirement */

#define NESTOR_ENUMERATOR(Name, Value) Name = Value,
enum Register : uint8_t { NESTOR_REGISTER_NUMBERS(NESTOR_ENUMERATOR) };
enum Trait : int32_t { NESTOR_TRAITS(NESTOR_ENUMERATOR) };
enum Access : int32_t { NESTOR_ACCESSES(NESTOR_ENUMERATOR) };
enum Place : int32_t { NESTOR_PLACES(NESTOR_ENUMERATOR) };
enum RegisterClass : int32_t { NESTOR_REGISTER_CLASSES(NESTOR_ENUMERATOR) };
enum ImplicitMemory : int32_t { NESTOR_IMPLICIT_MEMORIES(NESTOR_ENUMERATOR) };
enum Emulation : uint8_t { NESTOR_EMULATIONS(NESTOR_ENUMERATOR) };
enum Category : int32_t { NESTOR_CATEGORIES(NESTOR_ENUMERATOR) };
enum DecodeStatus : int8_t { NESTOR_DECODE_STATUSES(NESTOR_ENUMERATOR) };
enum NodeShift : uint32_t { NESTOR_NODE_SHIFTS(NESTOR_ENUMERATOR) };
enum FormStatus : int8_t { NESTOR_FORM_STATUSES(NESTOR_ENUMERATOR) };
enum StartState : uint64_t { NESTOR_START_STATE(NESTOR_ENUMERATOR) };
enum Limit : int32_t { NESTOR_LIMITS(NESTOR_ENUMERATOR) };
#undef NESTOR_ENUMERATOR

}  // namespace nestor
