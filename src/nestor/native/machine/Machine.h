//===- Machine.h - Cycles of this machine without counters ----------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The time stamp counter runs at a fixed rate, the core does not. A chain of
// dependent rotations, one cycle each, says how many core cycles a tick is at
// that moment; it runs beside everything that is measured.
//
//===----------------------------------------------------------------------===//

#ifndef NESTOR_MACHINE_H
#define NESTOR_MACHINE_H

#include <stddef.h>
#include <stdint.h>

/// Returns the core cycles in a tick of the time stamp counter, now.
double cyclesPerTick(void);
/// Returns the ticks in a second.
double ticksPerSecond(void);
/// Returns the present tick; what stands before it has been executed.
uint64_t ticks(void);

/// Prints what accesses and branches cost, a name and cycles on each line.
int printPenalties(void);
/// Runs a program several times and prints the cycles of each run.
int runProgram(int Count, char **Words);

#endif
