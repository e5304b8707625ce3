//===- Main.c - Options and registration of the tool ----------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Events.h"
#include "Instrument.h"
#include "pub_tool_libcbase.h"
#include "pub_tool_libcassert.h"
#include "pub_tool_libcprint.h"
#include "pub_tool_libcproc.h"
#include "pub_tool_options.h"

static const HChar *Path = "events.out";
static Int Process;

static Bool takeOption(const HChar *Word) {
  return VG_STR_CLO(Word, "--events-out", Path) ||
         VG_BOOL_CLO(Word, "--gshare", CompareWithGshare) ||
         VG_BOOL_CLO(Word, "--prefetch", Sizes.Prefetch) ||
         VG_INT_CLO(Word, "--data-ways", Sizes.DataWays) ||
         VG_INT_CLO(Word, "--code-ways", Sizes.CodeWays) ||
         VG_INT_CLO(Word, "--second-sets", Sizes.SecondSets) ||
         VG_INT_CLO(Word, "--second-ways", Sizes.SecondWays) ||
         VG_INT_CLO(Word, "--third-sets", Sizes.ThirdSets) ||
         VG_INT_CLO(Word, "--third-ways", Sizes.ThirdWays) ||
         VG_INT_CLO(Word, "--tlb-sets", Sizes.TlbSets) ||
         VG_INT_CLO(Word, "--tlb-ways", Sizes.TlbWays);
}

static void printUsage(void) {
  VG_(printf)("    --events-out=<file>   where the counts go\n");
}

static void printDebugUsage(void) { VG_(printf)("    (none)\n"); }

static void begin(void) {
  const HChar *Wrong = initCaches();
  if (Wrong) {
    VG_(umsg)("error: %s\n", Wrong);
    VG_(exit)(1);
  }
  initPredictors();
  Process = VG_(getpid)();
}

static void end(Int ExitStatus) {
  if (VG_(getpid)() == Process) // a child that forked off has no file
    writeRecords(Path, ExitStatus);
}

static void registerTool(void) {
  VG_(details_name)("nestor-events");
  VG_(details_version)("1");
  VG_(details_description)("events of a run, by instruction");
  VG_(details_copyright_author)("the authors of Nestor");
  VG_(details_bug_reports_to)("the authors of Nestor");
  VG_(basic_tool_funcs)(begin, instrument, end);
  VG_(needs_command_line_options)(takeOption, printUsage, printDebugUsage);
  // A piece of code must end at its first branch, and hold each instruction once.
  VG_(clo_vex_control).guest_chase = False;
  VG_(clo_vex_control).iropt_unroll_thresh = 0;
  // What an instruction fetches ahead is read off the registers.
  VG_(clo_vex_control).iropt_register_updates_default =
      VexRegUpdAllregsAtEachInsn;
}

VG_DETERMINE_INTERFACE_VERSION(registerTool)
