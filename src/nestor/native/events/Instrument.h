//===- Instrument.h - What is added to translated code --------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NESTOR_EVENTS_INSTRUMENT_H
#define NESTOR_EVENTS_INSTRUMENT_H

#include "pub_tool_basics.h"
#include "pub_tool_tooliface.h"

/// Returns the code of valgrind's piece \p In with the counting added to it.
IRSB *instrument(VgCallbackClosure *Closure, IRSB *In,
                 const VexGuestLayout *Layout, const VexGuestExtents *Extents,
                 const VexArchInfo *Host, IRType GuestWord, IRType HostWord);

#endif
