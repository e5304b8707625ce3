//===- Trial.cpp - Allocates a function in a forked child -----------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Trial.h"
#include "llvm/Support/ErrorHandling.h"
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <dirent.h>
#include <fcntl.h>
#include <cstdlib>
#include <limits>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <type_traits>
#include <unistd.h>

using namespace llvm;

namespace nestor {

constexpr rlim_t MaxTrialSeconds = 60; ///< Of processor time.

/// Where a child writes; -1 in every other process.
static int ReportTo = -1;

static_assert(std::is_trivially_copyable_v<Allocation>, "it goes through a pipe");

bool canTry() {
  DIR *Threads = opendir("/proc/self/task");
  if (!Threads)
    return false;
  unsigned Entries = 0;
  while (readdir(Threads))
    ++Entries;
  closedir(Threads);
  return Entries == 3; // ".", ".." and the only thread.
}

bool isTrial() { return ReportTo >= 0; }

/// Closes what this process has open but for the standard streams and \p Kept:
/// what it writes to the parent's files, such as remarks, would be in them.
static void closeFiles(int Kept) {
  DIR *Open = opendir("/proc/self/fd");
  if (!Open)
    _exit(1);
  while (const dirent *Entry = readdir(Open))
    // The names "." and ".." are no numbers, and 0 is a standard stream.
    if (const int FD = atoi(Entry->d_name);
        FD > STDERR_FILENO && FD != Kept && FD != dirfd(Open))
      close(FD);
  closedir(Open);
}

/// A crash must not run the handlers of the compiler, which would delete the
/// parent's output, and must not be heard of but through the pipe.
static void becomeTrial(int Pipe, pid_t Parent) {
  ReportTo = Pipe;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != Parent) // It has ended already.
    _exit(1);
  for (int Signal : {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT, SIGTRAP, SIGTERM,
                     SIGINT, SIGHUP, SIGQUIT, SIGPIPE, SIGXCPU})
    signal(Signal, SIG_DFL);
  const rlimit NoCore = {0, 0}, Time = {MaxTrialSeconds, MaxTrialSeconds};
  setrlimit(RLIMIT_CORE, &NoCore);
  setrlimit(RLIMIT_CPU, &Time);
  remove_fatal_error_handler();
  install_fatal_error_handler([](void *, const char *, bool) { _exit(1); });
  closeFiles(Pipe);
  const int Nowhere = open("/dev/null", O_WRONLY);
  if (Nowhere < 0)
    _exit(1);
  dup2(Nowhere, STDOUT_FILENO);
  dup2(Nowhere, STDERR_FILENO);
}

static bool receive(int Pipe, Allocation &Result) {
  char *To = reinterpret_cast<char *>(&Result);
  size_t Received = 0;
  while (Received < sizeof(Result)) {
    const ssize_t Bytes = read(Pipe, To + Received, sizeof(Result) - Received);
    if (Bytes < 0 && errno == EINTR)
      continue;
    if (Bytes <= 0)
      return false;
    Received += size_t(Bytes);
  }
  return true;
}

bool forkTrial(Allocation &Result) {
  Result = Allocation();
  Result.Cost.Instructions = std::numeric_limits<double>::infinity();
  int Pipe[2];
  if (pipe2(Pipe, O_CLOEXEC) != 0)
    return false;
  const pid_t Parent = getpid();
  const pid_t Child = fork();
  if (Child == 0) {
    close(Pipe[0]);
    becomeTrial(Pipe[1], Parent);
    return true;
  }
  close(Pipe[1]);
  Allocation Reported;
  if (Child > 0 && receive(Pipe[0], Reported))
    Result = Reported;
  close(Pipe[0]);
  int Status;
  while (Child > 0 && waitpid(Child, &Status, 0) < 0 && errno == EINTR)
    ;
  return false;
}

void abandonTrial() { _exit(1); }

void finishTrial(const Allocation &Result) {
  const char *From = reinterpret_cast<const char *>(&Result);
  size_t Sent = 0;
  while (Sent < sizeof(Result)) {
    const ssize_t Bytes = write(ReportTo, From + Sent, sizeof(Result) - Sent);
    if (Bytes < 0 && errno == EINTR)
      continue;
    if (Bytes <= 0)
      abandonTrial();
    Sent += size_t(Bytes);
  }
  _exit(0);
}

} // namespace nestor
