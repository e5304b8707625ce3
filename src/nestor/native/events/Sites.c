//===- Sites.c - The records of a run, and the file they go to ------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The file is a header, an array of each kind of record, the names that they
// refer to by place, and a last word that says that nothing is missing.
// nestor.events.simulated.records reads it.
//
//===----------------------------------------------------------------------===//

#include "Events.h"
#include "pub_tool_aspacemgr.h"
#include "pub_tool_debuginfo.h"
#include "pub_tool_libcassert.h"
#include "pub_tool_libcbase.h"
#include "pub_tool_libcfile.h"
#include "pub_tool_libcprint.h"
#include "pub_tool_libcproc.h"
#include "pub_tool_machine.h"
#include "pub_tool_mallocfree.h"
#include "pub_tool_vki.h"

enum { HashBits = 18, BufferBytes = 1 << 16, Version = 1 };

static Site *Sites[1 << HashBits];
static Run *Runs[1 << HashBits];
static ULong SiteCount, RunCount, EdgeCount;

static UInt placeOf(Addr Address) {
  return (Address * 0x9E3779B97F4A7C15ULL) >> (64 - HashBits);
}

Site *siteAt(Addr Address) {
  Site **Place = &Sites[placeOf(Address)], *S;
  for (S = *Place; S; S = S->Next)
    if (S->Seen.Address == Address)
      return S;
  S = VG_(calloc)("events.site", 1, sizeof(Site));
  S->Seen.Address = Address;
  S->Next = *Place;
  SiteCount++;
  return *Place = S;
}

Run *runAt(Addr Start, ULong Instructions) {
  Run **Place = &Runs[placeOf(Start)], *R;
  for (R = *Place; R; R = R->Next)
    if (R->Start == Start && R->Instructions == Instructions)
      return R;
  R = VG_(calloc)("events.run", 1, sizeof(Run));
  R->Start = Start;
  R->Instructions = Instructions;
  R->Next = *Place;
  RunCount++;
  return *Place = R;
}

void countEdge(Site *From, Addr To) {
  Edge *E = From->Edges, *Before = NULL;
  if (E && E->To == To) {
    E->Count++;
    return;
  }
  for (; E && E->To != To; E = E->Next)
    Before = E;
  if (!E) {
    E = VG_(calloc)("events.edge", 1, sizeof(Edge));
    E->To = To;
    EdgeCount++;
  } else
    Before->Next = E->Next;
  E->Count++;
  E->Next = From->Edges;
  From->Edges = E;
}

//===- The file ------------------------------------------------------------//

typedef struct {
  HChar Magic[8];
  ULong Version, Sites, Runs, Edges, Objects, NameBytes;
  Long ExitStatus;
  ULong Unused;
} Header;

/// A program or library, where it lay.
typedef struct {
  ULong Start, Size;
  Long Bias; ///< of its addresses in memory over those in its file
  ULong Name;
} Object;

typedef struct {
  ULong From, To, Count;
} EdgeRow;

typedef struct {
  ULong Start, Executions, Instructions;
  ULong Function; ///< its name
} RunRow;

static UChar Buffer[BufferBytes];
static Int File;
static UInt Filled;
static ULong NameBytes;

static void flush(void) {
  UInt Done = 0;
  while (Done < Filled) {
    Int Written = VG_(write)(File, Buffer + Done, Filled - Done);
    if (Written <= 0) {
      VG_(umsg)("error: the events cannot be written\n");
      VG_(exit)(1);
    }
    Done += Written;
  }
  Filled = 0;
}

static void put(const void *Data, UInt Bytes) {
  if (Filled + Bytes > BufferBytes)
    flush();
  VG_(memcpy)(Buffer + Filled, Data, Bytes);
  Filled += Bytes;
}

/// Names are kept until all records are written; equal ones mostly follow each
/// other.
static HChar *Names;
static ULong NamesRoom;

static ULong nameOf(const HChar *Text) {
  static ULong Last;
  ULong Bytes = VG_(strlen)(Text) + 1;
  if (Names && VG_(strcmp)(Names + Last, Text) == 0)
    return Last;
  if (NameBytes + Bytes > NamesRoom) {
    NamesRoom = 2 * (NamesRoom + Bytes);
    Names = VG_(realloc)("events.names", Names, NamesRoom);
  }
  VG_(memcpy)(Names + NameBytes, Text, Bytes);
  Last = NameBytes;
  NameBytes += Bytes;
  return Last;
}

static const HChar *functionAt(Addr Address) {
  const HChar *Name;
  return VG_(get_fnname)(VG_(current_DiEpoch)(), Address, &Name) ? Name : "";
}

/// Returns the piece of memory with the code of an object: beside its text there
/// are stubs to other objects (.plt) and what runs first and last (.init, .fini).
static Object codeOf(const DebugInfo *D) {
  Object O = {VG_(DebugInfo_get_text_avma)(D), VG_(DebugInfo_get_text_size)(D),
              VG_(DebugInfo_get_text_bias)(D), 0};
  const NSegment *S = VG_(am_find_nsegment)(O.Start);
  if (S && S->hasX && (S->kind == SkFileC || S->kind == SkFileV)) {
    O.Start = S->start;
    O.Size = S->end + 1 - S->start;
  }
  return O;
}

static ULong putObjects(Bool Really) {
  const DebugInfo *D = NULL;
  ULong Count = 0;
  while ((D = VG_(next_DebugInfo)(D))) {
    Object O = codeOf(D);
    Count++;
    if (!Really)
      continue;
    O.Name = nameOf(VG_(DebugInfo_get_filename)(D));
    put(&O, sizeof O);
  }
  return Count;
}

static void putRecords(void) {
  UInt I;
  for (I = 0; I < 1 << HashBits; I++) {
    const Site *S;
    for (S = Sites[I]; S; S = S->Next)
      put(&S->Seen, sizeof S->Seen);
  }
  for (I = 0; I < 1 << HashBits; I++) {
    const Run *R;
    for (R = Runs[I]; R; R = R->Next) {
      RunRow Row = {R->Start, R->Executions, R->Instructions,
                    nameOf(functionAt(R->Start))};
      put(&Row, sizeof Row);
    }
  }
  for (I = 0; I < 1 << HashBits; I++) {
    const Site *S;
    for (S = Sites[I]; S; S = S->Next) {
      const Edge *E;
      for (E = S->Edges; E; E = E->Next) {
        EdgeRow Row = {S->Seen.Address, E->To, E->Count};
        put(&Row, sizeof Row);
      }
    }
  }
}

void writeRecords(const HChar *Path, Int ExitStatus) {
  static const HChar End[8] = "complete";
  Header H = {"NESTOREV", Version, SiteCount, RunCount, EdgeCount, 0, 0,
              ExitStatus, 0};
  ULong Place;
  SysRes Opened =
      VG_(open)(Path, VKI_O_CREAT | VKI_O_TRUNC | VKI_O_WRONLY, 0600);
  if (sr_isError(Opened)) {
    VG_(umsg)("error: %s cannot be written\n", Path);
    VG_(exit)(1);
  }
  File = sr_Res(Opened);
  H.Objects = putObjects(False);
  put(&H, sizeof H); // once more below, with the size of the names
  putObjects(True);
  putRecords();
  for (Place = 0; Place < NameBytes; Place += BufferBytes / 2) {
    ULong Rest = NameBytes - Place;
    put(Names + Place, Rest < BufferBytes / 2 ? Rest : BufferBytes / 2);
  }
  put(End, sizeof End);
  flush();
  H.NameBytes = NameBytes;
  VG_(lseek)(File, 0, VKI_SEEK_SET);
  put(&H, sizeof H);
  flush();
  VG_(close)(File);
}
