// Branches whose predictability follows from how they are made, one kind a function.
#include <stdio.h>

enum { Rounds = 20000 };

static unsigned State = 2463534242u;
static volatile unsigned Sink;

static unsigned draw(void) {
  State ^= State << 13;
  State ^= State >> 17;
  State ^= State << 5;
  return State >> 7;
}

// A branch that the compiler can neither remove nor turn into a conditional move.
#define BRANCH(Condition) \
  do { \
    if (Condition) \
      __asm__ volatile("nop" ::: "memory"); \
    else \
      __asm__ volatile("xchg %%ax, %%ax" ::: "memory"); \
  } while (0)

__attribute__((noinline)) void loop_of_8(void) {
  for (int i = 0; i < Rounds / 8; ++i)
    for (int k = 0; k < 8; ++k)
      __asm__ volatile("" ::: "memory");
}
__attribute__((noinline)) void loop_of_30(void) {
  for (int i = 0; i < Rounds / 30; ++i)
    for (int k = 0; k < 30; ++k)
      __asm__ volatile("" ::: "memory");
}
__attribute__((noinline)) void loop_of_100(void) {
  for (int i = 0; i < 10 * Rounds / 100; ++i)
    for (int k = 0; k < 100; ++k)
      __asm__ volatile("" ::: "memory");
}
__attribute__((noinline)) void alternating(void) {
  for (int i = 0; i < Rounds; ++i)
    BRANCH(i & 1);
}
__attribute__((noinline)) void period_of_7(void) {
  for (int i = 0; i < Rounds; ++i)
    BRANCH((0x2d >> (i % 7)) & 1);
}
__attribute__((noinline)) void at_random(void) {
  for (int i = 0; i < Rounds; ++i)
    BRANCH(draw() & 1);
}
__attribute__((noinline)) void correlated(void) {
  for (int i = 0; i < Rounds; ++i) {
    unsigned Bit = draw() & 1;
    BRANCH(Bit);
    BRANCH(i & 1);
    BRANCH(Bit);
  }
}
__attribute__((noinline)) void biased(void) {
  for (int i = 0; i < Rounds; ++i)
    BRANCH(draw() % 100 == 0);
}

#define TARGET(N) \
  __attribute__((noinline)) static void target##N(void) { Sink = N; }
TARGET(0) TARGET(1) TARGET(2) TARGET(3)
static void (*volatile Targets[4])(void) = {target0, target1, target2, target3};

__attribute__((noinline)) void targets_in_turn(void) {
  for (int i = 0; i < Rounds; ++i)
    Targets[i & 3]();
}
__attribute__((noinline)) void targets_at_random(void) {
  for (int i = 0; i < Rounds; ++i)
    Targets[draw() & 3]();
}

__attribute__((noinline)) int shallow(int Depth) {
  return Depth ? shallow(Depth - 1) + (int)Sink : 0;
}
// From three places in turn, so that a stack that wrapped around is wrong.
int deep_b(int Depth);
int deep_c(int Depth);
__attribute__((noinline)) int deep_a(int Depth) {
  return Depth ? deep_b(Depth - 1) + (int)Sink : 0;
}
__attribute__((noinline)) int deep_b(int Depth) {
  return Depth ? deep_c(Depth - 1) + (int)Sink : 0;
}
__attribute__((noinline)) int deep_c(int Depth) {
  return Depth ? deep_a(Depth - 1) + (int)Sink : 0;
}

int main(void) {
  char From[512], To[512];
  loop_of_8(), loop_of_30(), loop_of_100();
  alternating(), period_of_7(), at_random(), correlated(), biased();
  targets_in_turn(), targets_at_random();
  for (int i = 0; i < 100; ++i)
    Sink += (unsigned)(shallow(20) + deep_a(64));
  for (int i = 0; i < 10; ++i) {
    void *D = To, *S = From;
    long Count = 500;
    __asm__ volatile("rep movsb" : "+D"(D), "+S"(S), "+c"(Count)::"memory");
    Sink += (unsigned char)To[i];
  }
  printf("%u\n", Sink != 0);
  return 0;
}
