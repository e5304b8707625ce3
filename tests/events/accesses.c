// Accesses whose misses follow from their order and extent, one kind a function.
#include <stdint.h>
#include <stdlib.h>

enum { Accesses = 100000, Line = 64 };

static uint64_t State = 88172645463325252ull;
static volatile uint64_t Sink;
static char *Memory;

static uint64_t draw(void) {
  State ^= State << 13;
  State ^= State >> 7;
  State ^= State << 17;
  return State >> 11;
}

#define READ(Place) (*(volatile char *)(Place))

__attribute__((noinline)) void sequential(char *M) { // 800 KiB, by 8 bytes
  for (long i = 0; i < Accesses; ++i)
    Sink += READ(M + 8 * i);
}
__attribute__((noinline)) void strided(char *M) { // 12.8 MB, by 128 bytes
  for (long i = 0; i < Accesses; ++i)
    Sink += READ(M + 128 * i);
}
__attribute__((noinline)) void same_place(char *M) {
  for (long i = 0; i < Accesses; ++i)
    Sink += READ(M);
}
__attribute__((noinline)) void random_64k(char *M) {
  for (long i = 0; i < Accesses; ++i)
    Sink += READ(M + draw() % 1024 * Line);
}
__attribute__((noinline)) void random_8m(char *M) {
  for (long i = 0; i < Accesses; ++i)
    Sink += READ(M + draw() % 131072 * Line);
}
__attribute__((noinline)) void random_32m(char *M) {
  for (long i = 0; i < Accesses; ++i)
    Sink += READ(M + draw() % 524288 * Line);
}

// Asked for just before by an instruction, whose operand has each form once.
#define AHEAD(Name, Instruction, Place)                                        \
  __attribute__((noinline)) void Name(char *M) {                               \
    register char *Base asm("r13");                                            \
    register uint64_t Index asm("r12");                                        \
    for (long i = 0; i < Accesses; ++i) {                                      \
      Index = draw() % 131072 * Line;                                          \
      Base = M;                                                                \
      asm volatile(Instruction : : "r"(Base), "r"(Index), "a"(M + Index));     \
      Sink += READ(Place);                                                     \
    }                                                                          \
  }
AHEAD(ahead_plain, "prefetcht0 (%%rax)", M + Index)
AHEAD(ahead_near, "prefetchnta -64(%%rax)", M + Index - Line)
AHEAD(ahead_far, "prefetchw 0x1000(%%r13,%%r12)", M + Index + 4096)
AHEAD(ahead_scaled, "prefetcht0 (%%r13,%%r12,8)", M + Index * 8)
AHEAD(ahead_table, "prefetcht0 (,%%rax,1)", M + Index)
AHEAD(ahead_second, "prefetcht1 (%%rax)", M + Index)

static char Table[1 << 16];
__attribute__((noinline)) static void sweep(char *M) { // the first level
  for (long i = 0; i < 4096; ++i)
    Sink += READ(M + i * Line);
}
__attribute__((noinline)) void ahead_next(char *M) { // of the next instruction
  for (long i = 0; i < 100; ++i) {
    sweep(M);
    asm volatile("prefetcht0 Table+0x8000(%rip)");
    Sink += READ(Table + 0x8000);
  }
}

__attribute__((noinline)) void chase_16k(void *P) {
  for (long i = 0; i < Accesses; ++i)
    P = *(void *volatile *)P;
  Sink += (uintptr_t)P;
}
__attribute__((noinline)) void chase_128k(void *P) {
  for (long i = 0; i < Accesses; ++i)
    P = *(void *volatile *)P;
  Sink += (uintptr_t)P;
}

static long double Numbers[1000];
__attribute__((noinline)) void long_doubles(long double *N) {
  for (long i = 0; i < 1000; ++i)
    N[i] *= 1.5L;
}
static char Equal[2][4096];
__attribute__((noinline)) void compared(const char *A, const char *B) {
  long Left = 4096;
  asm volatile("repe cmpsb" : "+S"(A), "+D"(B), "+c"(Left) : : "memory", "cc");
}

/// Links the lines of a piece of memory to one cycle in random order.
static void *link(char *M, long Lines) {
  uint32_t *Order = malloc(Lines * sizeof *Order);
  for (long i = 0; i < Lines; ++i)
    Order[i] = i;
  for (long i = Lines - 1; i > 0; --i) {
    long k = draw() % i;
    uint32_t Kept = Order[i];
    Order[i] = Order[k];
    Order[k] = Kept;
  }
  for (long i = 0; i < Lines; ++i)
    *(void **)(M + (uint64_t)Order[i] * Line) = M + (uint64_t)Order[(i + 1) % Lines] * Line;
  free(Order);
  return M;
}

int main(void) {
  Memory = aligned_alloc(4096, 80 << 20);
  sequential(Memory);
  strided(Memory);
  same_place(Memory);
  random_64k(Memory);
  random_8m(Memory);
  random_32m(Memory);
  ahead_plain(Memory);
  ahead_near(Memory + Line);
  ahead_far(Memory);
  ahead_scaled(Memory);
  ahead_table(Memory);
  ahead_second(Memory);
  ahead_next(Memory);
  chase_16k(link(Memory, 16384 / Line));
  chase_128k(link(Memory + (1 << 20), 131072 / Line));
  for (int i = 0; i < 10; ++i) {
    long_doubles(Numbers);
    compared(Equal[0], Equal[1]);
  }
  return 0;
}
