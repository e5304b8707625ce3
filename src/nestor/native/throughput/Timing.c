//===- Timing.c - Rounds of a block, each with its own clock --------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Throughput.h"

enum {
  ChainShort = 500,
  ChainLong = 1000,
  ChainCount = 60,
  ProbeUnroll = 100,
  ProbeCount = 100,
  ReferenceRuns = 4,
  // Copies in the longer code; they set how far repetitions overlap, so the
  // labels of the data set zen5 can only be repeated with these.
  UnrolledBytes = 4000,
  MinUnroll = 8,
  MaxUnroll = 200,
  MinCount = 8,
  // The clock may advance in steps of 26 ticks: a thousand of them are enough.
  EnoughTicks = 26000,
};

static void run(Code Function) {
  ((void (*)(void))(uintptr_t)Function.Base)();
}

static uint64_t fastest(Code Function, unsigned Runs, Control *State) {
  uint64_t Best = UINT64_MAX;
  while (Runs--) {
    refillPages();
    run(Function);
    if (State->GuardBefore != GUARD || State->GuardAfter != GUARD ||
        State->Counter != 0 || State->End < State->Start)
      finish(WritesHarness);
    uint64_t Ticks = State->End - State->Start;
    Best = Ticks < Best ? Ticks : Best;
  }
  return Best;
}

static double difference(Code Short, Code Long, unsigned Runs, Control *State) {
  uint64_t Less = fastest(Short, Runs, State);
  return (double)fastest(Long, Runs, State) - (double)Less;
}

Reference makeReference(Control *State) {
  static const uint8_t Add[] = {0x48, 0x01, 0xc9}; // add rcx, rcx
  static const uint8_t Fill[] = {
      0x48, 0x83, 0xc0, 0x01, 0x48, 0x83, 0xc1, 0x01, 0x90, // add rax, 1 …
      0x48, 0x83, 0xc2, 0x01, 0x48, 0x83, 0xc3, 0x01, 0x90, // nop
      0x48, 0x83, 0xc6, 0x01, 0x48, 0x83, 0xc7, 0x01, 0x90,
  };
  return (Reference){
      makeCode(State, Add, sizeof Add, ChainShort, false),
      makeCode(State, Add, sizeof Add, ChainLong, false),
      makeCode(State, Fill, sizeof Fill, ProbeUnroll, false),
  };
}

static double ticksPerCycle(Reference Ref, Control *State) {
  State->Count = ChainCount;
  return difference(Ref.Short, Ref.Long, ReferenceRuns, State) /
         ((double)(ChainLong - ChainShort) * ChainCount);
}

static double probe(Reference Ref, Control *State) {
  State->Count = ProbeCount;
  return (double)fastest(Ref.Probe, ReferenceRuns, State) /
         (ProbeUnroll * ProbeCount);
}

/// Returns how many repetitions make a difference that the clock can resolve.
static uint64_t enoughCount(const Code Codes[2], uint64_t Limit,
                            Control *State) {
  State->Count = MinCount;
  fastest(Codes[1], 1, State); // maps the pages, fills the caches
  double Ticks = difference(Codes[0], Codes[1], 2, State);
  double Count = MinCount * EnoughTicks / (Ticks < 1 ? 1 : Ticks);
  return Count < MinCount ? MinCount : Count > Limit ? Limit : Count;
}

void measure(const uint8_t *Block, size_t Length, Control *State, Reference Ref,
             const Settings *How, Outcome *Result) {
  unsigned Unroll = (unsigned)(UnrolledBytes / Length);
  Unroll = Unroll < MinUnroll ? MinUnroll : Unroll;
  Unroll = Unroll > MaxUnroll ? MaxUnroll : Unroll;
  Code Codes[2] = {
      makeCode(State, Block, Length, Unroll / 2, How->Fenced),
      makeCode(State, Block, Length, Unroll, How->Fenced),
  };
  bool Ready = Codes[0].Base && Codes[1].Base;
  if (!enterSandbox(Result, How, Codes) || !Ready)
    finish(Crashed);

  uint64_t Count = enoughCount(Codes, How->CountLimit, State);
  double Iterations = (double)(Unroll - Unroll / 2) * (double)Count;
  double Before = probe(Ref, State);
  for (unsigned Round = 0; Round < How->Rounds; ++Round) {
    double Tick = ticksPerCycle(Ref, State);
    State->Count = Count;
    double Ticks = difference(Codes[0], Codes[1], How->Runs, State);
    double After = probe(Ref, State);
    Result->TicksPerCycle = Tick;
    Result->Cycles[Round] = Ticks / Iterations / Tick;
    Result->Strain[Round] = (Before > After ? Before : After) / Tick;
    Before = After;
  }
  finish(Measured);
}
