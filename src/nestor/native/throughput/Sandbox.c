//===- Sandbox.c - What a block may do ------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Once a block has run, nothing of the C library may be used: the block may
// have changed the thread's base register or the library's memory.
//
//===----------------------------------------------------------------------===//

#define _GNU_SOURCE
#include "Throughput.h"
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <ucontext.h>
#include <unistd.h>

enum {
  HandlerStackBytes = 1 << 16,
  PageFlags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE,
  PageAccess = PROT_READ | PROT_WRITE,
  MemoryLimitBytes = 1 << 28,
};

// A pointer to another such page, so that chains of pointers stay in memory.
static const uint64_t Filling = 0x41234500;

static Outcome *TheResult;
static unsigned ThePageLimit;
static const Code *TheCodes;

// The only two places from which the kernel takes calls of a block's process.
long harnessCall(long Number, long, long, long, long, long, long);
void harnessReturn(void);
extern const char harnessCallSite[], harnessReturnSite[];
__asm__(".text\n"
        ".p2align 6\n"
        ".hidden harnessCall, harnessCallSite\n"
        ".hidden harnessReturn, harnessReturnSite\n"
        ".globl harnessCall, harnessCallSite\n"
        ".globl harnessReturn, harnessReturnSite\n"
        "harnessCall:\n"
        "  movq %rdi, %rax\n"
        "  movq %rsi, %rdi\n"
        "  movq %rdx, %rsi\n"
        "  movq %rcx, %rdx\n"
        "  movq %r8, %r10\n"
        "  movq %r9, %r8\n"
        "  movq 8(%rsp), %r9\n"
        "  syscall\n"
        "harnessCallSite:\n"
        "  ret\n"
        "harnessReturn:\n"
        "  movl $15, %eax\n" // rt_sigreturn
        "  syscall\n"
        "harnessReturnSite:\n"
        "  hlt\n");

void finish(Status Word) {
  TheResult->State = Word;
  for (;;)
    harnessCall(SYS_exit_group, 0, 0, 0, 0, 0, 0);
}

static void fill(uint64_t *Page) {
  for (unsigned Word = 0; Word < PageBytes / sizeof *Page; ++Word)
    Page[Word] = Filling;
}

void refillPages(void) {
  for (unsigned Page = 0; Page < TheResult->Pages; ++Page)
    fill((uint64_t *)TheResult->Page[Page]);
}

static bool inCode(uint64_t Address) {
  for (unsigned Which = 0; Which < 2; ++Which)
    if (Address - (uint64_t)TheCodes[Which].Base < TheCodes[Which].Size)
      return true;
  return false;
}

static void mapPage(uint64_t Address) {
  if (TheResult->Pages >= ThePageLimit)
    finish(TooManyPages);
  uint64_t Page = Address & ~(uint64_t)(PageBytes - 1);
  if (Page == 0) // the kernel would let root have it
    finish(BadAddress);
  long Got = harnessCall(SYS_mmap, (long)Page, PageBytes, PageAccess, PageFlags,
                         -1, 0);
  if ((uint64_t)Got != Page)
    finish(BadAddress);
  fill((uint64_t *)Page);
  TheResult->Page[TheResult->Pages++] = Page;
}

static void onFault(int Signal, siginfo_t *Info, void *Context) {
  (void)Signal;
  const ucontext_t *Where = Context;
  uint64_t Running = (uint64_t)Where->uc_mcontext.gregs[REG_RIP];
  uint64_t Address = (uint64_t)Info->si_addr;
  bool HasAddress = Info->si_code == SEGV_MAPERR || //
                    Info->si_code == SEGV_ACCERR;
  if (HasAddress && Running == Address)
    finish(LeftBlock);
  if (!inCode(Running))
    finish(Crashed);
  if (Info->si_code == SEGV_MAPERR)
    mapPage(Address);
  else if (Info->si_code != SEGV_ACCERR)
    finish(ProtectionFault);
  else
    finish(inCode(Address) ? WritesCode : BadAddress);
}

static bool catchFaults(void) {
  // The C library's way back from a handler would have to be allowed to blocks.
  struct {
    void (*Handler)(int, siginfo_t *, void *);
    unsigned long Flags;
    void (*Restorer)(void);
    uint64_t Mask;
  } Action = {onFault, SA_SIGINFO | SA_ONSTACK | 0x04000000 /* SA_RESTORER */,
              harnessReturn, 0};
  void *Memory = mmap(NULL, HandlerStackBytes, PageAccess,
                      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  stack_t Stack = {.ss_sp = Memory, .ss_size = HandlerStackBytes};
  return Memory != MAP_FAILED && sigaltstack(&Stack, NULL) == 0 &&
         syscall(SYS_rt_sigaction, SIGSEGV, &Action, NULL, 8) == 0;
}

// The process's own default deaths do the rest: a signal needs no handler, and
// cannot be stopped by what a block does to registers, flags or memory.
static bool limitResources(const Settings *How) {
  const struct rlimit None = {0, 0}, Memory = {MemoryLimitBytes,
                                               MemoryLimitBytes};
  const struct rlimit Seconds = {How->Milliseconds / 1000 + 2,
                                 How->Milliseconds / 1000 + 2};
  const struct itimerval Time = {
      {0, 0},
      {How->Milliseconds / 1000, How->Milliseconds % 1000 * 1000}};
  return prctl(PR_SET_PDEATHSIG, SIGKILL) == 0 &&
         prctl(PR_SET_DUMPABLE, 0) == 0 && // no core, nor who collects them
         setrlimit(RLIMIT_CORE, &None) == 0 &&
         setrlimit(RLIMIT_FSIZE, &None) == 0 &&
         setrlimit(RLIMIT_AS, &Memory) == 0 &&
         setrlimit(RLIMIT_CPU, &Seconds) == 0 &&
         setitimer(ITIMER_PROF, &Time, NULL) == 0;
}

#define FIELD(Name) (uint32_t)offsetof(struct seccomp_data, Name)
#define LOAD(Offset) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, Offset)
/// Goes on if the word loaded is \p Value, else skips \p Skip instructions.
#define UNLESS(Value, Skip)                                                    \
  BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)(Value), 0, Skip)
#define ALLOW BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)
#define KILL BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS)

static bool refuseSystemCalls(void) {
  uint64_t CallSite = (uint64_t)harnessCallSite;
  uint64_t ReturnSite = (uint64_t)harnessReturnSite;
  if (CallSite >> 32 != ReturnSite >> 32)
    return false;
  struct sock_filter Filter[] = {
      LOAD(FIELD(arch)),
      UNLESS(AUDIT_ARCH_X86_64, 19),
      LOAD(FIELD(instruction_pointer) + 4),
      UNLESS(CallSite >> 32, 17),
      LOAD(FIELD(instruction_pointer)),
      UNLESS(ReturnSite, 3),
      LOAD(FIELD(nr)),
      UNLESS(SYS_rt_sigreturn, 13),
      ALLOW,
      UNLESS(CallSite, 11),
      LOAD(FIELD(nr)),
      UNLESS(SYS_exit_group, 1),
      ALLOW,
      UNLESS(SYS_mmap, 7),
      LOAD(FIELD(args[1])),
      UNLESS(PageBytes, 5),
      LOAD(FIELD(args[2])),
      UNLESS(PageAccess, 3),
      LOAD(FIELD(args[3])),
      UNLESS(PageFlags, 1),
      ALLOW,
      KILL,
  };
  struct sock_fprog Program = {sizeof Filter / sizeof *Filter, Filter};
  // Without SPEC_ALLOW older kernels would slow down loads after stores.
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER,
                 SECCOMP_FILTER_FLAG_SPEC_ALLOW, &Program) == 0;
}

bool enterSandbox(Outcome *Result, const Settings *How, const Code Codes[2]) {
  TheResult = Result;
  ThePageLimit = How->PageLimit;
  TheCodes = Codes;
  return catchFaults() && limitResources(How) && refuseSystemCalls();
}
