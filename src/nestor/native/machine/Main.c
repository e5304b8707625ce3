//===- Main.c - What the program is asked to measure ----------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// usage: machine CORE penalties | machine CORE runs COUNT PROGRAM ARGUMENTS…
//
//===----------------------------------------------------------------------===//

#define _GNU_SOURCE
#include "Machine.h"
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(int Count, char **Words) {
  if (Count < 3) {
    fputs("usage: machine CORE penalties | runs COUNT PROGRAM\n", stderr);
    return 2;
  }
  cpu_set_t Cores;
  CPU_ZERO(&Cores);
  CPU_SET((size_t)atoi(Words[1]), &Cores);
  if (sched_setaffinity(0, sizeof Cores, &Cores) != 0) {
    fputs("the processor cannot be chosen\n", stderr);
    return 1;
  }
  // Where it is allowed, so that nothing of the same core comes between.
  struct sched_param First = {.sched_priority = 1};
  sched_setscheduler(0, SCHED_FIFO, &First);
  if (strcmp(Words[2], "penalties") == 0)
    return printPenalties();
  if (Count > 4 && strcmp(Words[2], "runs") == 0)
    return runProgram(atoi(Words[3]), Words + 4);
  fputs("usage: machine CORE penalties | runs COUNT PROGRAM\n", stderr);
  return 2;
}
