//===- Events.h - Events of a run, by instruction -------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A tool of valgrind that counts how often each instruction of a program runs,
// where its branches go, and which of its branches and accesses a recent core
// would mispredict or miss. Predictors and caches are simulated, so that equal
// runs give equal counts on every machine.
//
// Two records carry the counts. A Run is a piece of straight code that valgrind
// translates at once; how often it was entered is counted inside the translated
// code. A Site is an instruction; its events come from calls of this tool. The
// reader (nestor.events.simulated) makes basic blocks of both.
//
//===----------------------------------------------------------------------===//

#ifndef NESTOR_EVENTS_H
#define NESTOR_EVENTS_H

#include "pub_tool_basics.h"

enum { LongestInstruction = 15, LineShift = 6, PageShift = 12 };

/// How an instruction passes control on.
typedef enum {
  FallsThrough,
  Conditional,
  Jump,
  Call,
  Return,
  IndirectJump,
  IndirectCall,
  SystemCall,
  Repeats, ///< a string instruction with a prefix, which jumps to itself
} ExitKind;

/// Where an indirect branch or a return went, and how often.
typedef struct Edge {
  Addr To;
  ULong Count;
  struct Edge *Next;
} Edge;

/// The counts of an instruction, as they are written to the file.
typedef struct {
  ULong Address;
  ULong Taken;
  ULong Mispredicts;         ///< of its condition
  ULong GshareMispredicts;   ///< of the same by gshare; 0 without --gshare=yes
  ULong IndirectMispredicts; ///< of its target, also that of a return
  ULong L1Misses;
  ULong L2Misses;
  ULong L3Misses;
  ULong FetchMisses; ///< lines of code that the first-level cache lacked
  ULong TlbMisses;   ///< walks of the page table
  ULong RepBytes;    ///< that a repeated string instruction read, or wrote
  ULong RepTurns;    ///< how often it jumped to itself
  UChar Length;
  UChar Kind;   ///< an ExitKind
  UChar Reads;  ///< accesses of one execution
  UChar Writes; ///< the same; reading and writing one place counts here alone
  UChar Code[LongestInstruction];
  UChar Unused[5];
} Counts;

/// An instruction.
typedef struct Site {
  Counts Seen;
  Edge *Edges; ///< the one that was taken last is the first
  // What the prefetcher remembers of its accesses.
  Addr LastAddress;
  Long Stride;
  UInt Confidence;
  struct Site *Next; ///< in the table
} Site;

/// A piece of straight code, entered at its start alone.
typedef struct Run {
  ULong Start;
  ULong Executions;
  ULong Instructions;
  struct Run *Next; ///< in the table
} Run;

//===- Sites.c: the records ------------------------------------------------//

/// Returns the record of the instruction at \p Address, which may be new.
Site *siteAt(Addr Address);
/// Returns the record of \p Instructions instructions from \p Start on.
Run *runAt(Addr Start, ULong Instructions);
/// Counts that \p From went to \p To.
void countEdge(Site *From, Addr To);
/// Writes all records to the file \p Path; ends the process if that fails.
void writeRecords(const HChar *Path, Int ExitStatus);

//===- Predict.c: branches, called by translated code ----------------------//

void initPredictors(void);
VG_REGPARM(2) void onConditional(Site *Branch, ULong Taken);
VG_REGPARM(2) void onIndirect(Site *Branch, Addr To);
VG_REGPARM(2) void onReturn(Site *Branch, Addr To);
VG_REGPARM(1) void onCall(Addr ReturnsTo);
extern Bool CompareWithGshare;

//===- Caches.c: accesses, called by translated code -----------------------//

/// Sizes of the caches; first-level caches have FirstLevelSets sets.
typedef struct {
  Int DataWays, CodeWays;
  Int SecondSets, SecondWays;
  Int ThirdSets, ThirdWays;
  Int TlbSets, TlbWays; ///< of the second level
  Bool Prefetch;
} CacheSizes;

enum { FirstLevelSets = 64 };

extern CacheSizes Sizes;
/// The line of each set that was used last: translated code need not call for
/// an access to it, which would change nothing but the order of pages in the TLB.
extern ULong LastDataLine[FirstLevelSets];
extern ULong LastCodeLine[FirstLevelSets];

/// Makes the caches; returns what is wrong with Sizes, or null.
const HChar *initCaches(void);
VG_REGPARM(2) void onData(Site *Access, Addr Address);
VG_REGPARM(1) void onFetch(Site *First);
/// For an instruction that fetches a line ahead, into the first level too if
/// \p Nearest.
VG_REGPARM(2) void onPrefetch(Addr Address, ULong Nearest);

#endif
