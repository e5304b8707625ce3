//===- Prefetch.h - Instructions that fetch a line ahead ------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NESTOR_EVENTS_PREFETCH_H
#define NESTOR_EVENTS_PREFETCH_H

#include "pub_tool_basics.h"

/// What an instruction fetches ahead: Displacement + register Base + register
/// Index << Shift.
typedef struct {
  Long Displacement;
  Int Base, Index; ///< numbers of registers as instructions have them, or -1
  UChar Shift;
  Bool FromNext; ///< the displacement counts from the next instruction
  Bool Nearest;  ///< into the first level, not only into the second
} Prefetch;

/// Decodes prefetcht0, t1, t2, nta and w; False for any other instruction, and
/// for one of a segment or of 32-bit addresses.
/// \p Skipped is the number of its prefixes.
Bool decodePrefetch(const UChar *Bytes, UInt Skipped, UInt Length,
                    Prefetch *Found);

#endif
