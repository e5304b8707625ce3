//===- Clock.c - Ticks and core cycles ------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Machine.h"
#include <time.h>
#include <x86intrin.h>

enum { Chains = 12, Links = 1000, LinksUnrolled = 100 };

uint64_t ticks(void) {
  unsigned Core;
  uint64_t Now = __rdtscp(&Core);
  _mm_lfence();
  return Now;
}

double cyclesPerTick(void) {
  double Best = 0;
  for (int I = 0; I < Chains; I++) {
    uint64_t Value = (uint64_t)I, Start = ticks();
    for (int K = 0; K < Links; K++)
      __asm__ volatile(".rept 100\n\trol $1, %0\n\t.endr" : "+r"(Value));
    double Ratio = (double)(Links * LinksUnrolled) / (double)(ticks() - Start);
    Best = Ratio > Best ? Ratio : Best; // an interrupted chain reads too low
  }
  return Best;
}

static double now(void) {
  struct timespec Time;
  clock_gettime(CLOCK_MONOTONIC, &Time);
  return (double)Time.tv_sec + 1e-9 * (double)Time.tv_nsec;
}

double ticksPerSecond(void) {
  double Start = now(), End;
  uint64_t First = ticks(), Last;
  do {
    End = now();
    Last = ticks();
  } while (End - Start < 0.1);
  return (double)(Last - First) / (End - Start);
}
