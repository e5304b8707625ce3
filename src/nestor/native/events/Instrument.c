//===- Instrument.c - What is added to translated code --------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Entries of a run, and bytes and turns of string instructions, are counted
// inside the translated code. An access calls only if its line is not the one
// of its set that was used last, which the translated code sees for itself.
//
//===----------------------------------------------------------------------===//

#include "Instrument.h"
#include "Events.h"
#include "Prefetch.h"
#include "pub_tool_libcbase.h"
#include "pub_tool_machine.h"
#include "libvex_guest_amd64.h"

/// The piece of code that is being instrumented.
typedef struct {
  IRSB *Out;
  Site *Here;     ///< the present instruction
  Addr After;     ///< the address behind it
  Bool Repeats;   ///< it is a string instruction that jumps to itself
  IRExpr *Loaded; ///< where it read last
} Code;

//===- Expressions ---------------------------------------------------------//

static IRExpr *word(ULong Value) { return IRExpr_Const(IRConst_U64(Value)); }

static IRExpr *pointer(const void *Value) { return word((HWord)Value); }

/// Computes \p Value into a temporary of its own, since code is flat.
static IRExpr *computed(IRSB *Out, IRType Type, IRExpr *Value) {
  IRTemp Temp = newIRTemp(Out->tyenv, Type);
  addStmtToIRSB(Out, IRStmt_WrTmp(Temp, Value));
  return IRExpr_RdTmp(Temp);
}

static IRExpr *binary(IRSB *Out, IROp Op, IRExpr *Left, IRExpr *Right) {
  return computed(Out, Ity_I64, IRExpr_Binop(Op, Left, Right));
}

/// Reads a general register of the program, by its number in instructions.
static IRExpr *registerOf(IRSB *Out, Int Number) {
  Int Offset = offsetof(VexGuestAMD64State, guest_RAX) + 8 * Number;
  return computed(Out, Ity_I64, IRExpr_Get(Offset, Ity_I64));
}

static IRExpr *bitAsWord(IRSB *Out, IRExpr *Bit) {
  return computed(Out, Ity_I64, IRExpr_Unop(Iop_1Uto64, Bit));
}

static void add(IRSB *Out, ULong *Counter, IRExpr *Amount) {
  IRExpr *Before = computed(
      Out, Ity_I64, IRExpr_Load(Iend_LE, Ity_I64, pointer(Counter)));
  IRExpr *Sum = binary(Out, Iop_Add64, Before, Amount);
  addStmtToIRSB(Out, IRStmt_Store(Iend_LE, pointer(Counter), Sum));
}

static void call(IRSB *Out, const HChar *Name, void *Function, Int Registers,
                 IRExpr **Arguments, IRExpr *Guard) {
  IRDirty *Call = unsafeIRDirty_0_N(Registers, Name,
                                    VG_(fnptr_to_fnentry)(Function), Arguments);
  if (Guard)
    Call->guard = Guard;
  addStmtToIRSB(Out, IRStmt_Dirty(Call));
}

//===- Decoding ------------------------------------------------------------//

/// Returns the number of prefixes, and in \p Rep whether one of them repeats.
static UInt prefixes(const UChar *Bytes, UInt Length, Bool *Rep) {
  UInt I;
  *Rep = False;
  for (I = 0; I + 1 < Length; I++) {
    UChar B = Bytes[I];
    if (B == 0xf2 || B == 0xf3)
      *Rep = True;
    else if (B != 0x66 && B != 0x67 && B != 0x2e && B != 0x3e && B != 0x26 &&
             B != 0x36 && B != 0x64 && B != 0x65 && (B & 0xf0) != 0x40)
      break;
  }
  return I;
}

static Bool isString(UChar Opcode) {
  return (Opcode >= 0xa4 && Opcode <= 0xa7) ||
         (Opcode >= 0xaa && Opcode <= 0xaf);
}

static Bool isConditional(const UChar *Opcode, UInt Length) {
  return (Opcode[0] >= 0x70 && Opcode[0] <= 0x7f) ||
         (Opcode[0] >= 0xe0 && Opcode[0] <= 0xe3) ||
         (Opcode[0] == 0x0f && Length > 1 && (Opcode[1] & 0xf0) == 0x80);
}

/// Adds the call for an instruction that fetches a line ahead, of which valgrind
/// makes nothing.
static void noteSoftwarePrefetch(Code *C, const UChar *Bytes, UInt Skipped,
                                 UInt Length) {
  Prefetch P;
  IRExpr *Address;
  if (!decodePrefetch(Bytes, Skipped, Length, &P))
    return;
  Address = word(P.Displacement + (P.FromNext ? C->After : 0));
  if (P.Base >= 0)
    Address = binary(C->Out, Iop_Add64, Address, registerOf(C->Out, P.Base));
  if (P.Index >= 0)
    Address = binary(C->Out, Iop_Add64, Address,
                     binary(C->Out, Iop_Shl64, registerOf(C->Out, P.Index),
                            IRExpr_Const(IRConst_U8(P.Shift))));
  call(C->Out, "onPrefetch", onPrefetch, 2,
       mkIRExprVec_2(Address, word(P.Nearest)), NULL);
}

//===- Statements ----------------------------------------------------------//

static void enterInstruction(Code *C, const IRStmt *Mark) {
  Addr Address = Mark->Ist.IMark.addr;
  UInt Length = Mark->Ist.IMark.len, Skipped;
  const UChar *Bytes = (const UChar *)Address;
  ULong Line = Address >> LineShift;
  Site *S = siteAt(Address);
  Bool Rep, NewLine = !C->Here || C->Here->Seen.Address >> LineShift != Line;

  C->Here = S;
  C->After = Address + Length;
  C->Loaded = NULL;
  S->Seen.Length = Length > LongestInstruction ? LongestInstruction : Length;
  VG_(memcpy)(S->Seen.Code, Bytes, S->Seen.Length);
  S->Seen.Kind = FallsThrough;
  S->Seen.Reads = S->Seen.Writes = 0;
  Skipped = prefixes(Bytes, Length, &Rep);
  C->Repeats = Rep && isString(Bytes[Skipped]);
  if (C->Repeats)
    S->Seen.Kind = Repeats;
  else if (isConditional(Bytes + Skipped, Length - Skipped))
    S->Seen.Kind = Conditional;
  noteSoftwarePrefetch(C, Bytes, Skipped, Length);
  if (NewLine) {
    IRExpr *Last = computed(C->Out, Ity_I64,
                            IRExpr_Load(Iend_LE, Ity_I64,
                                        pointer(&LastCodeLine[Line % FirstLevelSets])));
    call(C->Out, "onFetch", onFetch, 1, mkIRExprVec_1(pointer(S)),
         computed(C->Out, Ity_I1,
                  IRExpr_Binop(Iop_CmpNE64, Last, word(Line))));
  }
}

/// Adds the call for an access to \p Address, which happens if \p Guard holds.
static void access(Code *C, IRExpr *Address, IRExpr *Guard) {
  IRSB *Out = C->Out;
  IRExpr *Line = binary(Out, Iop_Shr64, Address,
                        IRExpr_Const(IRConst_U8(LineShift)));
  IRExpr *Set = binary(Out, Iop_And64, Line, word(FirstLevelSets - 1));
  IRExpr *Offset = binary(Out, Iop_Shl64, Set, IRExpr_Const(IRConst_U8(3)));
  IRExpr *Place = binary(Out, Iop_Add64, Offset, pointer(LastDataLine));
  IRExpr *Last =
      computed(Out, Ity_I64, IRExpr_Load(Iend_LE, Ity_I64, Place));
  IRExpr *Other =
      computed(Out, Ity_I1, IRExpr_Binop(Iop_CmpNE64, Last, Line));
  if (Guard)
    Other = computed(
        Out, Ity_I1,
        IRExpr_Unop(Iop_64to1, binary(Out, Iop_And64, bitAsWord(Out, Other),
                                      bitAsWord(Out, Guard))));
  call(Out, "onData", onData, 2, mkIRExprVec_2(pointer(C->Here), Address),
       Other);
}

static void noteRead(Code *C, IRExpr *Address, Int Bytes, IRExpr *Guard) {
  if (!C->Here)
    return;
  C->Here->Seen.Reads++;
  C->Loaded = Address;
  access(C, Address, Guard);
  if (C->Repeats && C->Here->Seen.Reads == 1)
    add(C->Out, &C->Here->Seen.RepBytes, word(Bytes));
}

static void noteWrite(Code *C, IRExpr *Address, Int Bytes, IRExpr *Guard) {
  if (!C->Here)
    return;
  C->Here->Seen.Writes++;
  if (C->Loaded && eqIRAtom(C->Loaded, Address) && C->Here->Seen.Reads)
    C->Here->Seen.Reads--;
  access(C, Address, Guard);
  if (C->Repeats && !C->Loaded)
    add(C->Out, &C->Here->Seen.RepBytes, word(Bytes));
}

/// Adds what counts a side exit: a condition, or a string instruction's turn.
static void noteExit(Code *C, const IRStmt *Exit) {
  Addr To = Exit->Ist.Exit.dst->Ico.U64;
  IRExpr *Goes;
  if (!C->Here || Exit->Ist.Exit.jk != Ijk_Boring)
    return;
  if (C->Repeats) {
    if (To == C->Here->Seen.Address)
      add(C->Out, &C->Here->Seen.RepTurns,
          bitAsWord(C->Out, Exit->Ist.Exit.guard));
    return;
  }
  if (C->Here->Seen.Kind != Conditional)
    return;
  Goes = bitAsWord(C->Out, Exit->Ist.Exit.guard);
  if (To == C->After) // the condition is inverted, and the branch is next
    Goes = binary(C->Out, Iop_Xor64, Goes, word(1));
  call(C->Out, "onConditional", onConditional, 2,
       mkIRExprVec_2(pointer(C->Here), Goes), NULL);
}

/// Adds what counts the way out of the piece of code.
static void noteEnd(Code *C, IRSB *In) {
  Bool Direct = In->next->tag == Iex_Const;
  Addr To = Direct ? In->next->Iex.Const.con->Ico.U64 : 0;
  Counts *Seen;
  if (!C->Here)
    return;
  Seen = &C->Here->Seen;
  switch (In->jumpkind) {
  case Ijk_Call:
    Seen->Kind = Direct ? Call : IndirectCall;
    call(C->Out, "onCall", onCall, 1, mkIRExprVec_1(word(C->After)), NULL);
    break;
  case Ijk_Ret:
    Seen->Kind = Return;
    call(C->Out, "onReturn", onReturn, 2,
         mkIRExprVec_2(pointer(C->Here), In->next), NULL);
    return;
  case Ijk_Boring:
    if (C->Repeats) {
      if (Direct && To == Seen->Address)
        add(C->Out, &Seen->RepTurns, word(1));
      return;
    }
    if (Direct && (Seen->Kind == Conditional || To == C->After))
      return;
    Seen->Kind = Direct ? Jump : IndirectJump;
    break;
  default:
    if (In->jumpkind >= Ijk_Sys_syscall)
      Seen->Kind = SystemCall;
    return;
  }
  if (!Direct)
    call(C->Out, "onIndirect", onIndirect, 2,
         mkIRExprVec_2(pointer(C->Here), In->next), NULL);
}

/// Adds what counts the accesses of an operation that valgrind leaves to a
/// function of its own, such as loads and stores of 80 bits.
static void noteHelper(Code *C, const IRDirty *Helper) {
  // A constant guard always holds.
  IRExpr *Guard = Helper->guard->tag == Iex_Const ? NULL : Helper->guard;
  if (Helper->mFx == Ifx_Read)
    noteRead(C, Helper->mAddr, Helper->mSize, Guard);
  else if (Helper->mFx != Ifx_None)
    noteWrite(C, Helper->mAddr, Helper->mSize, Guard);
}

static void noteStatement(Code *C, const IRStmt *S) {
  IRTypeEnv *Types = C->Out->tyenv;
  switch (S->tag) {
  case Ist_WrTmp:
    if (S->Ist.WrTmp.data->tag == Iex_Load) {
      const IRExpr *Load = S->Ist.WrTmp.data;
      noteRead(C, Load->Iex.Load.addr, sizeofIRType(Load->Iex.Load.ty), NULL);
    }
    break;
  case Ist_Store:
    noteWrite(C, S->Ist.Store.addr,
              sizeofIRType(typeOfIRExpr(Types, S->Ist.Store.data)), NULL);
    break;
  case Ist_LoadG:
    noteRead(C, S->Ist.LoadG.details->addr, 0, S->Ist.LoadG.details->guard);
    break;
  case Ist_StoreG:
    noteWrite(C, S->Ist.StoreG.details->addr, 0, S->Ist.StoreG.details->guard);
    break;
  case Ist_CAS: // reads and writes one place
    noteWrite(C, S->Ist.CAS.details->addr, 0, NULL);
    break;
  case Ist_Dirty:
    noteHelper(C, S->Ist.Dirty.details);
    break;
  default:
    break;
  }
}

IRSB *instrument(VgCallbackClosure *Closure, IRSB *In,
                 const VexGuestLayout *Layout, const VexGuestExtents *Extents,
                 const VexArchInfo *Host, IRType GuestWord, IRType HostWord) {
  Code C = {deepCopyIRSBExceptStmts(In), NULL, 0, False, NULL};
  ULong Instructions = 0;
  Bool Entered = False;
  Int I;
  for (I = 0; I < In->stmts_used; I++)
    Instructions += In->stmts[I]->tag == Ist_IMark;
  for (I = 0; I < In->stmts_used; I++) {
    IRStmt *S = In->stmts[I];
    if (S->tag == Ist_NoOp)
      continue;
    if (S->tag == Ist_Exit)
      noteExit(&C, S); // before it leaves
    addStmtToIRSB(C.Out, S);
    if (S->tag == Ist_IMark) {
      if (!Entered)
        add(C.Out, &runAt(S->Ist.IMark.addr, Instructions)->Executions,
            word(1));
      Entered = True;
      enterInstruction(&C, S);
    } else
      noteStatement(&C, S);
  }
  noteEnd(&C, In);
  return C.Out;
}
