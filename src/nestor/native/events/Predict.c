//===- Predict.c - Branch predictors --------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Conditions are predicted by TAGE (Seznec and Michaud, 2006): a table without
// history and several with tags, each indexed by a longer history; the longest
// that knows the branch answers. Targets are predicted in the same way from the
// same histories (ITTAGE), returns from a stack. gshare is there to compare.
//
//===----------------------------------------------------------------------===//

#include "Events.h"

Bool CompareWithGshare = False;

enum {
  BaseBits = 14,
  Tables = 8,
  TableBits = 11,
  TagBits = 11,
  HistorySize = 512, // a power of two that exceeds the longest history
  CounterMax = 3,
  CounterMin = -4,
  UsefulMax = 3,
  TrustMax = 15,
  Impatience = 1023, // failed allocations before all entries become less useful
  GshareBits = 14,
  TargetTables = 4,
  TargetBits = 11,
  TargetBaseBits = 12,
  TargetHistoryBits = 3,
  StackSize = 32,
};

static const UInt Lengths[Tables] = {4, 8, 14, 26, 46, 84, 150, 270};
/// The history, as an index of Lengths, of each table of targets.
static const UInt TargetHistory[TargetTables] = {1, 2, 4, 6};

typedef struct {
  UShort Tag;
  Char Counter; ///< taken if it is not negative
  UChar Useful;
} Entry;

static Entry Tagged[Tables][1 << TableBits];
static UChar Base[1 << BaseBits]; ///< counters from 0 to 3
static Int TrustAlternative;      ///< over an entry that is new
static Int Failures;
static UInt Random = 12345;

static UChar History[HistorySize]; ///< bits, a ring; the newest at Newest
static UInt Newest;
static UInt Path; ///< low bits of the addresses of recent branches

/// Histories of each table, folded to the bits of its index and of its tag.
static UInt Folded[3][Tables];
static const UInt FoldedBits[3] = {TableBits, TagBits, TagBits - 1};
static UInt LeavesAt[3][Tables];

static UChar Gshare[1 << GshareBits];
static UInt GshareHistory;

typedef struct {
  Addr To;
  UShort Tag;
  UChar Trust; ///< from 0 to 3
} Target;

static Target TargetBase[1 << TargetBaseBits];
static Target Targets[TargetTables][1 << TargetBits];

static Addr Stack[StackSize];
static UInt Depth;

void initPredictors(void) {
  UInt F, T, I;
  for (F = 0; F < 3; F++)
    for (T = 0; T < Tables; T++)
      LeavesAt[F][T] = Lengths[T] % FoldedBits[F];
  for (T = 0; T < Tables; T++)
    for (I = 0; I < 1 << TableBits; I++)
      Tagged[T][I].Tag = 0xffff; // no branch has it: tags are shorter
  for (T = 0; T < TargetTables; T++)
    for (I = 0; I < 1 << TargetBits; I++)
      Targets[T][I].Tag = 0xffff;
  for (I = 0; I < 1 << BaseBits; I++)
    Base[I] = 1;
}

/// Appends a bit to the history and to its folded copies.
static inline void remember(UInt Bit) {
  UInt F, T, Leaves[Tables];
  Newest = (Newest - 1) % HistorySize;
  History[Newest] = Bit;
  for (T = 0; T < Tables; T++)
    Leaves[T] = History[(Newest + Lengths[T]) % HistorySize];
  for (F = 0; F < 3; F++)
    for (T = 0; T < Tables; T++) {
      UInt Value = (Folded[F][T] << 1) ^ Bit ^ (Leaves[T] << LeavesAt[F][T]);
      Value ^= Value >> FoldedBits[F];
      Folded[F][T] = Value & ((1u << FoldedBits[F]) - 1);
    }
}

static inline UInt hashOf(Addr Branch) {
  UInt Low = (UInt)Branch;
  return Low ^ (Low >> 2) ^ (Low >> 13);
}

static inline void strengthen(UChar *Counter, Bool Up) {
  if (Up && *Counter < 3)
    ++*Counter;
  else if (!Up && *Counter)
    --*Counter;
}

static inline UInt drawn(void) {
  Random = Random * 1103515245 + 12345;
  return Random >> 16;
}

/// Gives a mispredicted branch entries in tables of longer history.
static void allocate(UInt First, const UInt *Index, const UShort *Tag,
                     Bool Taken) {
  UInt T, Failed = 0, Done = 0;
  // Not always the next table, so that branches do not fight for one.
  UInt Draw = drawn();
  if (First + 1 < Tables && (Draw & 1))
    First++;
  for (T = First; T < Tables && Done < 2; T++) {
    Entry *E = &Tagged[T][Index[T]];
    if (E->Useful) {
      Failed++;
      continue;
    }
    E->Tag = Tag[T];
    E->Counter = Taken ? 0 : -1;
    Done++;
    T++; // the second one is not the neighbour of the first
  }
  Failures += (Int)Failed - 2 * (Int)Done;
  if (Failures < 0)
    Failures = 0;
  if (Failures < Impatience)
    return;
  Failures = 0;
  for (T = 0; T < Tables; T++) {
    UInt I;
    for (I = 0; I < 1 << TableBits; I++)
      Tagged[T][I].Useful >>= 1;
  }
}

static void compareGshare(Site *Branch, UInt Hash, Bool Taken) {
  UChar *Counter = &Gshare[(Hash ^ GshareHistory) % (1 << GshareBits)];
  if ((*Counter >= 2) != Taken)
    Branch->Seen.GshareMispredicts++;
  strengthen(Counter, Taken);
  GshareHistory = (GshareHistory << 1) | Taken;
}

VG_REGPARM(2) void onConditional(Site *Branch, ULong Goes) {
  Bool Taken = Goes != 0, Weak = False, Longest, Alternative, Answer;
  UInt Hash = hashOf(Branch->Seen.Address), T, Index[Tables], Hits = 0;
  UShort Tag[Tables];
  Int Provider = -1, Second = -1;
  UChar *Simple = &Base[Hash % (1 << BaseBits)];
  Entry *E = NULL, *Other = NULL;

  Branch->Seen.Taken += Taken;
  if (CompareWithGshare)
    compareGshare(Branch, Hash, Taken);
  for (T = 0; T < Tables; T++) {
    UInt Recent = Lengths[T] < 16 ? Path & ((1u << Lengths[T]) - 1) : Path;
    Index[T] = (Hash ^ (Hash >> (TableBits - T)) ^ Folded[0][T] ^
                (Recent * (2 * T + 3) >> 4)) %
               (1 << TableBits);
    Tag[T] =
        (Hash ^ Folded[1][T] ^ (Folded[2][T] << 1)) & ((1 << TagBits) - 1);
  }
  for (T = 0; T < Tables; T++)
    Hits |= (UInt)(Tagged[T][Index[T]].Tag == Tag[T]) << T;

  if (Hits) {
    Provider = 31 - __builtin_clz(Hits);
    Hits &= ~(1u << Provider);
    E = &Tagged[Provider][Index[Provider]];
  }
  if (Hits) {
    Second = 31 - __builtin_clz(Hits);
    Other = &Tagged[Second][Index[Second]];
  }
  Alternative = Other ? Other->Counter >= 0 : *Simple >= 2;
  Longest = E ? E->Counter >= 0 : Alternative;
  Answer = Longest;
  if (E) {
    Weak = !E->Useful && (E->Counter == 0 || E->Counter == -1);
    if (Weak && TrustAlternative >= 0)
      Answer = Alternative;
  }
  if (Answer != Taken)
    Branch->Seen.Mispredicts++;

  if (Answer != Taken && Provider + 1 < Tables && !(Weak && Longest == Taken))
    allocate(Provider + 1, Index, Tag, Taken);
  if (E) {
    if (Weak && Longest != Alternative) {
      if (Alternative == Taken && TrustAlternative < TrustMax)
        TrustAlternative++;
      else if (Alternative != Taken && TrustAlternative > -TrustMax - 1)
        TrustAlternative--;
    }
    if (!E->Useful) { // what answers instead of it keeps learning
      if (Other) {
        if (Taken && Other->Counter < CounterMax)
          Other->Counter++;
        else if (!Taken && Other->Counter > CounterMin)
          Other->Counter--;
      } else
        strengthen(Simple, Taken);
    }
    if (Taken && E->Counter < CounterMax)
      E->Counter++;
    else if (!Taken && E->Counter > CounterMin)
      E->Counter--;
    if (Longest != Alternative) {
      if (Longest == Taken && E->Useful < UsefulMax)
        E->Useful++;
      else if (Longest != Taken && E->Useful)
        E->Useful--;
    }
  } else
    strengthen(Simple, Taken);
  remember(Taken);
  Path = ((Path << 1) ^ (Hash & 1)) & 0xffff;
}

/// Corrects an entry; tells whether it gave up its target.
static Bool correct(Target *E, Addr To) {
  if (E->To == To) {
    if (E->Trust < 3)
      E->Trust++;
    return False;
  }
  if (E->Trust) {
    E->Trust--;
    return False;
  }
  E->To = To;
  return True;
}

VG_REGPARM(2) void onIndirect(Site *Branch, Addr To) {
  UInt Hash = hashOf(Branch->Seen.Address), T, Index[TargetTables], Bits;
  UShort Tag[TargetTables];
  Int Provider = -1;
  Target *Simple = &TargetBase[Hash % (1 << TargetBaseBits)], *E = Simple;
  Addr Answer;

  Branch->Seen.Taken++;
  countEdge(Branch, To);
  for (T = 0; T < TargetTables; T++) {
    UInt H = TargetHistory[T];
    Index[T] = (Hash ^ (Hash >> (TargetBits - T)) ^ Folded[0][H]) %
               (1 << TargetBits);
    Tag[T] =
        (Hash ^ Folded[1][H] ^ (Folded[2][H] << 1)) & ((1 << TagBits) - 1);
    if (Targets[T][Index[T]].Tag == Tag[T])
      Provider = T;
  }
  if (Provider >= 0)
    E = &Targets[Provider][Index[Provider]];
  Answer = E->Trust || Provider < 0 ? E->To : Simple->To;
  if (Answer != To) {
    Branch->Seen.IndirectMispredicts++;
    for (T = Provider + 1; T < TargetTables; T++) {
      Target *New = &Targets[T][Index[T]];
      if (New->Trust) {
        New->Trust--;
        continue;
      }
      New->Tag = Tag[T];
      New->To = To;
      break;
    }
  }
  correct(E, To);
  if (E != Simple)
    correct(Simple, To);
  Bits = (UInt)(To ^ (To >> 3) ^ (To >> 7));
  for (T = 0; T < TargetHistoryBits; T++)
    remember((Bits >> T) & 1);
}

VG_REGPARM(1) void onCall(Addr ReturnsTo) {
  Stack[Depth++ % StackSize] = ReturnsTo;
}

VG_REGPARM(2) void onReturn(Site *Branch, Addr To) {
  Branch->Seen.Taken++;
  countEdge(Branch, To);
  if (Stack[--Depth % StackSize] != To)
    Branch->Seen.IndirectMispredicts++;
}
