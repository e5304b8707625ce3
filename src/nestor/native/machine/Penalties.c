//===- Penalties.c - What accesses and branches cost ----------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Rounds are short, so that few of them are interrupted, and many. Code that is
// the same each time has the time of its shortest round; a chain of loads, which
// is at another place each time, that of the lower quartile.
//
//===----------------------------------------------------------------------===//

#define _GNU_SOURCE
#include "Machine.h"
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

enum {
  Rounds = 120,
  PerRatio = 8, // rounds between two looks at the clock
  Line = 64,
  HugePage = 2 << 20,
  Branches = 2048,
  Steps = 4000,
  Loads = 1000,
};

static uint64_t State = 88172645463325252ULL;

static uint64_t draw(void) {
  State ^= State << 13;
  State ^= State >> 7;
  State ^= State << 17;
  return State;
}

typedef struct {
  char *Memory;
  size_t Bytes;
} Area;

/// Maps memory that begins at a huge page.
static Area mapArea(size_t Bytes, int Huge) {
  size_t Whole = Bytes + HugePage;
  char *Memory = mmap(NULL, Whole, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (Memory == MAP_FAILED) {
    fputs("there is not enough memory\n", stderr);
    exit(1);
  }
  uintptr_t Start = ((uintptr_t)Memory + HugePage - 1) & ~(uintptr_t)(HugePage - 1);
  madvise((void *)Start, Bytes, Huge ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
  return (Area){Memory, Whole};
}

static int compareNumbers(const void *Left, const void *Right) {
  double A = *(const double *)Left, B = *(const double *)Right;
  return (A > B) - (A < B);
}

/// Returns the cycles of a load in a chain through all lines of \p Bytes bytes
/// in random order.
static double chase(size_t Bytes, int Huge) {
  size_t Lines = Bytes / Line;
  Area Mapped = mapArea(Bytes, Huge);
  char *M = (char *)(((uintptr_t)Mapped.Memory + HugePage - 1) &
                     ~(uintptr_t)(HugePage - 1));
  uint32_t *Order = malloc(Lines * sizeof *Order);
  for (size_t I = 0; I < Lines; I++)
    Order[I] = (uint32_t)I;
  for (size_t I = Lines - 1; I; I--) {
    size_t K = draw() % I; // one cycle through all of them
    uint32_t Kept = Order[I];
    Order[I] = Order[K];
    Order[K] = Kept;
  }
  for (size_t I = 0; I < Lines; I++)
    *(void **)(M + (size_t)Order[I] * Line) =
        M + (size_t)Order[(I + 1) % Lines] * Line;
  free(Order);
  void *Place = M;
  for (size_t I = 0; I < Lines; I++)
    Place = *(void *volatile *)Place;
  double Cycles[Rounds], Ratio = 0;
  for (int R = 0; R < Rounds; R++) {
    if (R % PerRatio == 0)
      Ratio = cyclesPerTick();
    uint64_t Start = ticks();
    for (int I = 0; I < Loads; I++)
      Place = *(void *volatile *)Place;
    Cycles[R] = (double)(ticks() - Start) * Ratio / Loads;
  }
  munmap(Mapped.Memory, Mapped.Bytes);
  qsort(Cycles, Rounds, sizeof *Cycles, compareNumbers);
  return Cycles[Rounds / 4] + (Place == NULL);
}

/// Returns the cycles of a branch that is taken always (0 halves), never (2), or
/// at random (1): of its shortest round, which at random is one of few
/// mispredictions, some 6 % below the mean.
static double branch(int Halves) {
  static unsigned char Taken[Branches];
  volatile uint64_t Sum = 0;
  double Best = 1e9, Ratio = 0;
  for (int R = 0; R < Rounds; R++) {
    if (R % PerRatio == 0)
      Ratio = cyclesPerTick();
    for (int I = 0; I < Branches; I++)
      Taken[I] = Halves == 1 ? draw() >> 40 & 1 : Halves == 2;
    uint64_t Value = 0, Start = ticks();
    for (int I = 0; I < Branches; I++)
      __asm__ volatile("cmpb $0, %1\n\tje 1f\n\tadd $3, %0\n1:"
                       : "+r"(Value)
                       : "m"(Taken[I])
                       : "cc");
    double Cycles = (double)(ticks() - Start) * Ratio / Branches;
    Sum += Value;
    Best = Cycles < Best ? Cycles : Best;
  }
  return Best;
}

/// Returns the cycles of one of the \p PerStep pieces of code of a step.
#define SHORTEST(Result, PerStep, ...)                                         \
  do {                                                                         \
    double Ratio = 0;                                                          \
    Result = 1e9;                                                              \
    for (int R = 0; R < Rounds; R++) {                                         \
      if (R % PerRatio == 0)                                                   \
        Ratio = cyclesPerTick();                                               \
      uint64_t Start = ticks();                                                \
      for (int I = 0; I < Steps; I++)                                          \
        __asm__ volatile(__VA_ARGS__);                                         \
      double Cycles = (double)(ticks() - Start) * Ratio / Steps / (PerStep);   \
      Result = Cycles < Result ? Cycles : Result;                              \
    }                                                                          \
  } while (0)

static double forwarded(int Indexed) {
  uint64_t Memory = 1, Value = 1, Index = 0, *Place = &Memory;
  double Result;
  if (Indexed)
    SHORTEST(Result, 1, "mov %0, (%1, %2, 8)\n\tmov (%1, %2, 8), %0\n\tadd $1, %0"
             : "+r"(Value) : "r"(Place), "r"(Index) : "memory");
  else
    SHORTEST(Result, 1, "mov %0, (%1)\n\tmov (%1), %0\n\tadd $1, %0"
             : "+r"(Value) : "r"(Place) : "memory");
  return Result > 1 ? Result - 1 : 0; // without the addition
}

/// Each in a line of its own: jumps that are closer than a branch target buffer
/// can tell apart cost several times as much, and are rare in programs.
static double takenJump(void) {
  double Result;
  SHORTEST(Result, 100,
           ".rept 100\n\tjmp 1f\n\t.p2align 6\n1:\n\t.endr" ::: "memory");
  return Result;
}

static double callAndReturn(void) {
  double Result;
  // Below what the compiler may keep under the stack pointer.
  SHORTEST(Result, 1, "lea -128(%%rsp), %%rsp\n\tcall 1f\n\tjmp 2f\n1:\tret\n"
           "2:\tlea 128(%%rsp), %%rsp" ::: "memory");
  return Result;
}

static size_t sizeOr(int Name, size_t Otherwise) {
  long Size = sysconf(Name);
  return Size > 0 ? (size_t)Size : Otherwise;
}

int printPenalties(void) {
  size_t First = sizeOr(_SC_LEVEL1_DCACHE_SIZE, 32 << 10);
  size_t Second = sizeOr(_SC_LEVEL2_CACHE_SIZE, 1 << 20);
  size_t Walked = 16 * Second < (64 << 20) ? 16 * Second : 64 << 20;
  double Predicted = (branch(0) + branch(2)) / 2;
  printf("mispredict %.3f\n", 2 * (branch(1) - Predicted));
  printf("taken_branch %.3f\n", takenJump());
  printf("call_return %.3f\n", callAndReturn());
  printf("store_forward %.3f\n", forwarded(0));
  printf("store_forward_indexed %.3f\n", forwarded(1));
  printf("l1 %.3f\n", chase(First / 2, 1));
  printf("l2 %.3f\n", chase(Second / 4, 1));
  printf("llc %.3f\n", chase(3 * Second, 1));
  double Huge = chase(Walked, 1), Small = chase(Walked, 0);
  printf("page_walk %.3f\n", Small > Huge ? Small - Huge : 0);
  printf("memory %.3f\n", chase((size_t)256 << 20, 1));
  return 0;
}
