//===- Throughput.h - Cycles of basic blocks without counters -------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A block is repeated in straight line, A times in one piece of code and B
// times in another; the difference of their times, by the time stamp counter,
// is that of B - A iterations. A chain of additions that takes one cycle each,
// timed in the same round, says how long a cycle is at that moment.
//
// Each block runs in a process of its own that can do nothing but compute, map
// pages at the addresses it touches, and end.
//
//===----------------------------------------------------------------------===//

#ifndef NESTOR_THROUGHPUT_H
#define NESTOR_THROUGHPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
  PageBytes = 4096,
  MaxBlockBytes = 4096,
  MaxRounds = 64,
  MaxPages = 256,
};

/// What became of a block; the words are those of statusWord().
typedef enum {
  Unfinished, ///< still running, or dead without a word
  Measured,
  TooLong,
  BadAddress,
  ProtectionFault,
  WritesCode,
  LeftBlock,
  TooManyPages,
  WritesHarness,
  NotMeasurable,
  IllegalInstruction,
  ArithmeticFault,
  AlignmentFault,
  Trap,
  SystemCall,
  Timeout,
  Crashed,
  StatusCount,
} Status;

typedef struct {
  unsigned Rounds;
  unsigned Runs;         ///< of each piece of code in a round; the fastest counts
  unsigned PageLimit;    ///< pages that a block may touch
  unsigned Milliseconds; ///< of CPU time that a block may take
  unsigned CountLimit;   ///< repetitions between two refills of the pages
  bool Fenced;           ///< repetitions do not overlap
} Settings;

/// What a child tells its parent through memory that they share. The block can
/// write there too, so the parent checks all of it.
typedef struct {
  uint32_t State; ///< a Status
  uint32_t Pages;
  double TicksPerCycle;
  double Cycles[MaxRounds]; ///< per iteration, one for each round
  double Strain[MaxRounds]; ///< cycles of the probe around each round
  uint64_t Page[MaxPages];  ///< addresses
} Outcome;

//===----------------------------------------------------------------------===//
// Code.c: the code that is timed
//===----------------------------------------------------------------------===//

/// What the generated code keeps in memory, since the block owns all registers.
typedef struct {
  uint64_t GuardBefore;
  uint64_t Start, End; ///< time stamps
  uint64_t Count; ///< repetitions to make
  uint64_t Counter;
  uint64_t StackPointer;
  uint32_t BlockMxcsr, CleanMxcsr;
  uint64_t GuardAfter;
} Control;

#define GUARD UINT64_C(0x6e6573746f72)

/// Executable code: all of [Base, Base + Size) is mapped and can only be run.
typedef struct {
  uint8_t *Base;
  size_t Size;
} Code;

/// Makes a function without arguments that stamps the time, repeats State->Count
/// times {set all registers; \p Unroll copies of the block}, and stamps again.
/// Base is null if there is no memory.
Code makeCode(Control *State, const uint8_t *Block, size_t Length,
              unsigned Unroll, bool Fenced);

//===----------------------------------------------------------------------===//
// Sandbox.c: what a block may do
//===----------------------------------------------------------------------===//

/// Shuts this process in: from now on it can compute, and map up to the limit
/// of pages by touching them. A fault that is none of these ends it with a word
/// in \p Result. Returns whether the walls stand.
bool enterSandbox(Outcome *Result, const Settings *How, const Code Codes[2]);

/// Gives all pages of the block their first content again.
void refillPages(void);

/// Ends the process with \p Word in the outcome.
_Noreturn void finish(Status Word);

//===----------------------------------------------------------------------===//
// Timing.c: rounds
//===----------------------------------------------------------------------===//

/// What every round begins and ends with: the chain of additions in two lengths,
/// and a probe that fills the core, which slows down when something else uses a
/// part of it (another thread of the core, say).
typedef struct {
  Code Short, Long, Probe;
} Reference;

Reference makeReference(Control *State);

/// Measures a block and ends the process, which is to be a child.
_Noreturn void measure(const uint8_t *Block, size_t Length, Control *State,
                       Reference Ref, const Settings *How, Outcome *Result);

#endif // NESTOR_THROUGHPUT_H
