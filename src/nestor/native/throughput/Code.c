//===- Code.c - The code that is timed ------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#define _GNU_SOURCE
#include "Throughput.h"
#include <string.h>
#include <sys/mman.h>

enum {
  FrameBytes = 1024, // more than everything around the copies
  StackRegister = 4,
  // Where in a cache line the first copy begins. Front ends care; the labels of
  // the data set zen5 were measured so.
  FirstCopyPhase = 35,
  LoopHeadBytes = 16 * 10 + 1,
};

// Registers differ, so that memory operands fall into pages of their own, and
// all point to where a program may have memory.
static uint64_t initialValue(unsigned Register) {
  return Register == StackRegister ? 0x22345800
                                   : 0x12345600 + Register * 0x1010140ull;
}

static uint8_t *put(uint8_t *At, const void *Bytes, size_t Count) {
  return (uint8_t *)memcpy(At, Bytes, Count) + Count;
}

#define PUT(At, ...)                                                           \
  ((At) = put((At), (const uint8_t[]){__VA_ARGS__},                            \
              sizeof((const uint8_t[]){__VA_ARGS__})))

static uint8_t *put64(uint8_t *At, uint64_t Value) {
  return put(At, &Value, sizeof Value);
}

static uint8_t *setRegister(uint8_t *At, unsigned Register, uint64_t Value) {
  PUT(At, Register < 8 ? 0x48 : 0x49, 0xb8 + (Register & 7));
  return put64(At, Value);
}

static uint8_t *storeRax(uint8_t *At, const void *Place) {
  PUT(At, 0x48, 0xa3);
  return put64(At, (uint64_t)Place);
}

static uint8_t *loadRax(uint8_t *At, const void *Place) {
  PUT(At, 0x48, 0xa1);
  return put64(At, (uint64_t)Place);
}

static uint8_t *setMxcsr(uint8_t *At, const uint32_t *Place) {
  At = setRegister(At, 0, (uint64_t)Place);
  PUT(At, 0x0f, 0xae, 0x10); // ldmxcsr [rax]
  return At;
}

static uint8_t *stampTime(uint8_t *At, const void *Place) {
  PUT(At, 0x0f, 0xae, 0xe8);       // lfence
  PUT(At, 0x0f, 0x31);             // rdtsc
  PUT(At, 0x0f, 0xae, 0xe8);       // lfence
  PUT(At, 0x48, 0xc1, 0xe2, 0x20); // shl rdx, 32
  PUT(At, 0x48, 0x09, 0xd0);       // or rax, rdx
  return storeRax(At, Place);
}

static uint8_t *zeroVectors(uint8_t *At) {
  if (__builtin_cpu_supports("avx")) {
    PUT(At, 0xc5, 0xfc, 0x77); // vzeroall
    return At;
  }
  for (unsigned Register = 0; Register < 16; ++Register) {
    uint8_t Rex = Register < 8 ? 0x40 : 0x45;
    PUT(At, Rex, 0x0f, 0x57, 0xc0 | (Register & 7) * 9); // xorps
  }
  return At;
}

static uint8_t *enter(uint8_t *At, Control *State) {
  PUT(At, 0x53, 0x55);                                     // push rbx, rbp
  PUT(At, 0x41, 0x54, 0x41, 0x55, 0x41, 0x56, 0x41, 0x57); // push r12 … r15
  PUT(At, 0x48, 0x89, 0xe0);                               // mov rax, rsp
  At = storeRax(At, &State->StackPointer);
  At = loadRax(At, &State->Count);
  At = storeRax(At, &State->Counter);
  At = zeroVectors(At);
  PUT(At, 0xdb, 0xe3); // fninit
  return setMxcsr(At, &State->BlockMxcsr);
}

// The block may have left anything in flags, control words and registers.
static uint8_t *leave(uint8_t *At, Control *State) {
  At = loadRax(At, &State->StackPointer);
  PUT(At, 0x48, 0x89, 0xc4); // mov rsp, rax
  PUT(At, 0x6a, 0x02, 0x9d); // push 2; popf
  PUT(At, 0xdb, 0xe3);       // fninit
  At = zeroVectors(At);
  At = setMxcsr(At, &State->CleanMxcsr);
  PUT(At, 0x41, 0x5f, 0x41, 0x5e, 0x41, 0x5d, 0x41, 0x5c); // pop r15 … r12
  PUT(At, 0x5d, 0x5b, 0xc3);                               // pop rbp, rbx; ret
  return At;
}

Code makeCode(Control *State, const uint8_t *Block, size_t Length,
              unsigned Unroll, bool Fenced) {
  size_t Size = FrameBytes + Unroll * Length;
  Size = (Size + PageBytes - 1) & ~(size_t)(PageBytes - 1);
  void *Memory = mmap(NULL, Size, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (Memory == MAP_FAILED)
    return (Code){NULL, 0};
  memset(Memory, 0xcc, Size); // int3: falling out of the code ends in a trap

  uint8_t *At = enter(Memory, State);
  At = stampTime(At, &State->Start);
  while (((uintptr_t)At + LoopHeadBytes) % 64 != FirstCopyPhase)
    PUT(At, 0x90);
  const uint8_t *Loop = At;
  for (unsigned Register = 0; Register < 16; ++Register)
    At = setRegister(At, Register, initialValue(Register));
  PUT(At, 0xfc); // cld
  for (unsigned Copy = 0; Copy < Unroll; ++Copy)
    At = put(At, Block, Length);
  if (Fenced)
    PUT(At, 0x0f, 0xae, 0xe8);
  At = loadRax(At, &State->Counter);
  PUT(At, 0x48, 0xff, 0xc8); // dec rax
  At = storeRax(At, &State->Counter);
  PUT(At, 0x0f, 0x85); // jnz Loop
  int32_t Back = (int32_t)(Loop - (At + sizeof Back));
  At = put(At, &Back, sizeof Back);
  At = stampTime(At, &State->End);
  leave(At, State);

  if (mprotect(Memory, Size, PROT_READ | PROT_EXEC) != 0)
    return (Code){NULL, 0};
  return (Code){Memory, Size};
}
