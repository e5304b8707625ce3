//===- Main.c - Blocks in, cycles out -------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Reads a block in hexadecimal from each line and answers with a line of five
// fields parted by tabs: the status; clock ticks per core cycle; the cycles per
// iteration of each round; the cycles of the probe around each round; the pages
// touched, in hexadecimal. A field without a value is empty. A block that fails costs
// its own process and nothing else.
//
//===----------------------------------------------------------------------===//

#define _GNU_SOURCE
#include "Throughput.h"
#include <math.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
  WallFactor = 20, // a process may wait this much longer than it runs
  ManyRepetitions = 4000,
  FewRepetitions = 20, // as in the data set zen5
};

static const char *statusWord(Status Which) {
  static const char *const Words[StatusCount] = {
      [Unfinished] = "crashed",
      [Measured] = "ok",
      [TooLong] = "too long",
      [BadAddress] = "bad address",
      [ProtectionFault] = "protection fault",
      [WritesCode] = "writes code",
      [LeftBlock] = "left the block",
      [TooManyPages] = "too many pages",
      [WritesHarness] = "writes over the harness",
      [NotMeasurable] = "not measurable",
      [IllegalInstruction] = "illegal instruction",
      [ArithmeticFault] = "arithmetic fault",
      [AlignmentFault] = "alignment fault",
      [Trap] = "trap",
      [SystemCall] = "system call",
      [Timeout] = "timeout",
      [Crashed] = "crashed",
  };
  return Words[Which];
}

static Status statusOfDeath(int Signal) {
  switch (Signal) {
  case SIGILL:
    return IllegalInstruction;
  case SIGFPE:
    return ArithmeticFault;
  case SIGBUS:
    return AlignmentFault;
  case SIGTRAP:
    return Trap;
  case SIGSYS:
    return SystemCall;
  case SIGPROF:
  case SIGXCPU:
    return Timeout;
  default:
    return Crashed;
  }
}

/// Waits for \p Child, however long the block sleeps, and says how it ended.
static Status waitFor(pid_t Child, const Settings *How, const Outcome *Result) {
  int Handle = (int)syscall(SYS_pidfd_open, Child, 0);
  struct pollfd Waiter = {.fd = Handle, .events = POLLIN};
  bool Late = Handle >= 0 &&
              poll(&Waiter, 1, (int)(How->Milliseconds * WallFactor)) == 0;
  if (Late)
    kill(Child, SIGKILL);
  int Ending = 0;
  waitpid(Child, &Ending, 0);
  if (Handle >= 0)
    close(Handle);
  if (Late)
    return Timeout;
  if (WIFSIGNALED(Ending))
    return statusOfDeath(WTERMSIG(Ending));
  return Result->State < StatusCount ? (Status)Result->State : Crashed;
}

/// A block can write what it likes into the outcome; only numbers that make
/// sense leave this function.
static Status check(Status Claimed, const Settings *How, const Outcome *Result) {
  if (Result->Pages > How->PageLimit)
    return WritesHarness;
  if (Claimed != Measured)
    return Claimed;
  for (unsigned Round = 0; Round < How->Rounds; ++Round)
    if (!isfinite(Result->Cycles[Round]) || !isfinite(Result->Strain[Round]))
      return NotMeasurable;
  return isfinite(Result->TicksPerCycle) && Result->TicksPerCycle > 0
             ? Measured
             : NotMeasurable;
}

static void printNumbers(const double *Numbers, unsigned Count) {
  for (unsigned Which = 0; Which < Count; ++Which)
    printf("%s%.6f", Which ? " " : "", Numbers[Which]);
  printf("\t");
}

static void report(Status Final, const Settings *How, const Outcome *Result) {
  printf("%s\t", statusWord(Final));
  if (Final == Measured) {
    printf("%.6f\t", Result->TicksPerCycle);
    printNumbers(Result->Cycles, How->Rounds);
    printNumbers(Result->Strain, How->Rounds);
    for (unsigned Page = 0; Page < Result->Pages; ++Page)
      printf("%s%llx", Page ? " " : "", (unsigned long long)Result->Page[Page]);
  } else {
    printf("\t\t\t");
  }
  printf("\n");
  fflush(stdout);
}

/// Returns the number of bytes, 0 if \p Text is not a line with a block, or one more
/// than there may be.
static size_t parse(const char *Text, uint8_t *Block) {
  size_t Length = 0;
  for (; strspn(Text, "0123456789abcdefABCDEF") >= 2; Text += 2) {
    if (Length == MaxBlockBytes)
      return strchr(Text, '\n') ? MaxBlockBytes + 1 : 0;
    const char Pair[] = {Text[0], Text[1], 0};
    Block[Length++] = (uint8_t)strtoul(Pair, NULL, 16);
  }
  return *Text == '\n' ? Length : 0;
}

static Status attempt(const uint8_t *Block, size_t Length, Control *State,
                      Reference Ref, const Settings *How, Outcome *Result) {
  memset(Result, 0, sizeof *Result);
  pid_t Child = fork();
  if (Child == 0)
    measure(Block, Length, State, Ref, How, Result);
  Status Final = Child > 0 ? waitFor(Child, How, Result) : Crashed;
  return check(Final, How, Result);
}

static void handle(const uint8_t *Block, size_t Length, Control *State,
                   Reference Ref, const Settings *How, Outcome *Result) {
  Status Final = TooLong;
  if (Length <= MaxBlockBytes)
    Final = attempt(Block, Length, State, Ref, How, Result);
  // A block that counts in memory walks on and on until its pages are refilled.
  Settings RefillSooner = *How;
  RefillSooner.CountLimit = FewRepetitions;
  if (Final == TooManyPages)
    Final = attempt(Block, Length, State, Ref, &RefillSooner, Result);
  report(Final, How, Result);
}

static int fail(const char *Why) {
  fprintf(stderr, "error: %s\n", Why);
  return EXIT_FAILURE;
}

static bool readOptions(int Count, char **Words, Settings *How, int *Core) {
  for (int Option; (Option = getopt(Count, Words, "c:r:n:p:m:f")) != -1;) {
    unsigned Value = optarg ? (unsigned)strtoul(optarg, NULL, 10) : 0;
    switch (Option) {
    case 'c':
      *Core = (int)Value;
      break;
    case 'r':
      How->Rounds = Value;
      break;
    case 'n':
      How->Runs = Value;
      break;
    case 'p':
      How->PageLimit = Value;
      break;
    case 'm':
      How->Milliseconds = Value;
      break;
    case 'f':
      How->Fenced = true;
      break;
    default:
      return false;
    }
  }
  return How->Rounds >= 1 && How->Rounds <= MaxRounds && How->Runs >= 1 &&
         How->PageLimit <= MaxPages && How->Milliseconds >= 1 &&
         How->Milliseconds <= 60000 && optind == Count;
}

/// The parent process may have blocked or ignored signals that end a block.
static void resetSignals(void) {
  sigset_t Nothing;
  sigemptyset(&Nothing);
  sigprocmask(SIG_SETMASK, &Nothing, NULL);
  for (int Signal = 1; Signal < NSIG; ++Signal)
    signal(Signal, SIG_DFL);
}

static void *sharedMemory(size_t Size) {
  void *Memory = mmap(NULL, Size, PROT_READ | PROT_WRITE,
                      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  return Memory == MAP_FAILED ? NULL : Memory;
}

int main(int Count, char **Words) {
  Settings How = {7, 10, 64, 500, ManyRepetitions, false};
  int Core = -1;
  if (!readOptions(Count, Words, &How, &Core))
    return fail("usage: throughput [-c core] [-r rounds] [-n runs] [-p pages] "
                "[-m milliseconds] [-f] < blocks");
  resetSignals();
  cpu_set_t Cores;
  CPU_ZERO(&Cores);
  if (Core >= 0 && Core < CPU_SETSIZE)
    CPU_SET(Core, &Cores);
  if (Core >= 0 && sched_setaffinity(0, sizeof Cores, &Cores) != 0)
    return fail("this process may not run on that core");

  Outcome *Result = sharedMemory(sizeof *Result);
  Control *State = mmap(NULL, PageBytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (!Result || State == MAP_FAILED)
    return fail("out of memory");
  // Denormals are zero and no exception is unmasked in blocks.
  *State = (Control){.GuardBefore = GUARD,
                     .BlockMxcsr = 0x9fc0,
                     .CleanMxcsr = 0x1f80,
                     .GuardAfter = GUARD};
  Reference Ref = makeReference(State);
  if (!Ref.Short.Base || !Ref.Long.Base || !Ref.Probe.Base)
    return fail("no executable memory");

  static char Line[1 << 18];
  static uint8_t Block[MaxBlockBytes];
  while (fgets(Line, sizeof Line, stdin)) {
    size_t Length = parse(Line, Block);
    if (Length == 0)
      return fail("a line is not a block in hexadecimal");
    handle(Block, Length, State, Ref, &How, Result);
  }
  return EXIT_SUCCESS;
}
