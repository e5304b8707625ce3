//===- Caches.c - Caches, TLBs and prefetchers ----------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Caches replace the line that was not used for longest. An access is that of
// its first byte. What a prefetcher or an instruction fetches ahead is there at
// once.
//
//===----------------------------------------------------------------------===//

#include "Events.h"
#include "pub_tool_libcassert.h"
#include "pub_tool_mallocfree.h"

CacheSizes Sizes = {12, 8, 2048, 16, 32768, 16, 128, 16, True};
ULong LastDataLine[FirstLevelSets];
ULong LastCodeLine[FirstLevelSets];

enum {
  MostWays = 64,
  MostSets = 1 << 22,
  FirstTlbSets = 16,
  FirstTlbWays = 6,
  LinesOfPage = 1 << (PageShift - LineShift),
  Streams = 64,
  StreamDepth = 6,     // lines that are fetched ahead
  StrideConfident = 2, // equal strides before the next one is trusted
  StrideDepth = 8,
  LongestStride = 2048,
};

#define NO_LINE (~0ULL)

typedef struct {
  ULong *Tags; ///< by set; in a set, the one that was used last is the first
  UInt Sets, Ways;
} Cache;

static Cache FirstData, FirstCode, Second, Third, FirstTlb, SecondTlb;
static ULong LastPage = NO_LINE;

/// A page in which lines miss one after the other.
typedef struct {
  ULong Page;
  Int Line;      ///< in the page, that missed last
  Int Direction; ///< 1 or -1; 0 before the second miss
} Stream;

static Stream AllStreams[Streams];

static void make(Cache *C, Int Sets, Int Ways) {
  UInt I;
  C->Sets = Sets;
  C->Ways = Ways;
  C->Tags = VG_(malloc)("events.cache", sizeof(ULong) * Sets * Ways);
  for (I = 0; I < C->Sets * C->Ways; I++)
    C->Tags[I] = NO_LINE;
}

static Bool isPowerOfTwo(Int N) { return N > 0 && (N & (N - 1)) == 0; }

static Bool isSize(Int Sets, Int Ways) {
  return Sets > 0 && Sets <= MostSets && Ways > 0 && Ways <= MostWays;
}

const HChar *initCaches(void) {
  UInt I;
  if (!isSize(FirstLevelSets, Sizes.DataWays) ||
      !isSize(FirstLevelSets, Sizes.CodeWays) ||
      !isSize(Sizes.SecondSets, Sizes.SecondWays) ||
      !isSize(Sizes.ThirdSets, Sizes.ThirdWays) ||
      !isSize(Sizes.TlbSets, Sizes.TlbWays))
    return "a cache has 1 to 64 ways and 1 to 4194304 sets";
  if (!isPowerOfTwo(Sizes.SecondSets) || !isPowerOfTwo(Sizes.TlbSets))
    return "the sets of L2 and of the TLB are a power of two";
  make(&FirstData, FirstLevelSets, Sizes.DataWays);
  make(&FirstCode, FirstLevelSets, Sizes.CodeWays);
  make(&Second, Sizes.SecondSets, Sizes.SecondWays);
  make(&Third, Sizes.ThirdSets, Sizes.ThirdWays);
  make(&FirstTlb, FirstTlbSets, FirstTlbWays);
  make(&SecondTlb, Sizes.TlbSets, Sizes.TlbWays);
  for (I = 0; I < FirstLevelSets; I++)
    LastDataLine[I] = LastCodeLine[I] = NO_LINE;
  for (I = 0; I < Streams; I++)
    AllStreams[I].Page = NO_LINE;
  return NULL;
}

/// Makes \p Line the one of its set that was used last; tells whether it was
/// there.
static inline Bool touchIn(ULong *Set, UInt Ways, ULong Line) {
  ULong Moved = Set[0];
  UInt I;
  if (Moved == Line)
    return True;
  for (I = 1; I < Ways; I++) {
    ULong Here = Set[I];
    Set[I] = Moved;
    if (Here == Line)
      break;
    Moved = Here;
  }
  Set[0] = Line;
  return I < Ways;
}

static inline Bool touch(Cache *C, ULong Line) {
  return touchIn(C->Tags + (Line & (C->Sets - 1)) * C->Ways, C->Ways, Line);
}

/// The same for the third level, whose sets are chosen by a hash of the line
/// and may be of any number.
static inline Bool touchThird(ULong Line) {
  ULong Hash = (Line * 0x9E3779B97F4A7C15ULL) >> 32;
  return touchIn(Third.Tags + ((Hash * Third.Sets) >> 32) * Third.Ways,
                 Third.Ways, Line);
}

/// Fetches a line into the second level, and says what missed.
static inline void fetchSecond(Counts *Seen, ULong Line) {
  if (touch(&Second, Line))
    return;
  Seen->L2Misses++;
  if (!touchThird(Line))
    Seen->L3Misses++;
}

static inline void prefetchSecond(ULong Line) {
  if (!touch(&Second, Line))
    touchThird(Line);
}

/// Fetches the lines ahead of a miss, if the page has missed line by line.
static void followStream(ULong Line) {
  ULong Page = Line / LinesOfPage;
  Int Place = Line % LinesOfPage, I;
  Stream *S = &AllStreams[(Page ^ (Page >> 6)) % Streams];
  Int Step = Place - S->Line;
  Int Direction = Step > 0 ? 1 : -1;
  if (S->Page != Page) {
    S->Page = Page;
    S->Line = Place;
    S->Direction = 0;
    return;
  }
  if (Step == 0 || Step > 2 * StreamDepth || Step < -2 * StreamDepth) {
    S->Line = Place;
    S->Direction = 0;
    return;
  }
  S->Line = Place;
  if (S->Direction != Direction) {
    S->Direction = Direction;
    return;
  }
  for (I = 1; I <= StreamDepth; I++) {
    Int Ahead = Place + Direction * I;
    if (Ahead < 0 || Ahead >= LinesOfPage)
      return;
    prefetchSecond(Page * LinesOfPage + Ahead);
  }
}

/// Fetches what an instruction will access if its stride goes on. Steps within a
/// line are none: not all of them are seen.
static inline void followStride(Site *Access, Addr Address) {
  Long Step = (Long)(Address - Access->LastAddress);
  ULong Ahead;
  if (Address >> LineShift == Access->LastAddress >> LineShift)
    return;
  Access->LastAddress = Address;
  if (Step != Access->Stride) {
    Access->Stride = Step;
    Access->Confidence = 0;
    return;
  }
  if (Access->Confidence < StrideConfident) {
    Access->Confidence++;
    return;
  }
  if (Step > LongestStride || Step < -LongestStride)
    return;
  Ahead = (Address + StrideDepth * Step) >> LineShift;
  if (!touch(&FirstData, Ahead))
    prefetchSecond(Ahead);
  // The first access to it must call, or the stride would seem to break.
  LastDataLine[Ahead % FirstLevelSets] = NO_LINE;
}

VG_REGPARM(2) void onData(Site *Access, Addr Address) {
  ULong Line = Address >> LineShift, Page = Address >> PageShift;
  if (Sizes.Prefetch)
    followStride(Access, Address);
  if (!touch(&FirstData, Line)) {
    Access->Seen.L1Misses++;
    fetchSecond(&Access->Seen, Line);
    if (Sizes.Prefetch)
      followStream(Line);
  }
  LastDataLine[Line % FirstLevelSets] = Line;
  if (Page != LastPage) {
    LastPage = Page;
    if (!touch(&FirstTlb, Page) && !touch(&SecondTlb, Page))
      Access->Seen.TlbMisses++;
  }
}

VG_REGPARM(2) void onPrefetch(Addr Address, ULong Nearest) {
  ULong Line = Address >> LineShift, Page = Address >> PageShift;
  if (!Nearest || !touch(&FirstData, Line))
    prefetchSecond(Line);
  // The first access to the line must call, so that its stride is seen.
  LastDataLine[Line % FirstLevelSets] = NO_LINE;
  LastPage = Page;
  if (!touch(&FirstTlb, Page))
    touch(&SecondTlb, Page);
}

VG_REGPARM(1) void onFetch(Site *First) {
  ULong Line = First->Seen.Address >> LineShift;
  if (!touch(&FirstCode, Line)) {
    First->Seen.FetchMisses++;
    fetchSecond(&First->Seen, Line);
  }
  LastCodeLine[Line % FirstLevelSets] = Line;
}
