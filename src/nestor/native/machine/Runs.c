//===- Runs.c - Cycles of whole runs of a program -------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#define _GNU_SOURCE
#include "Machine.h"
#include <fcntl.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static double seconds(struct timeval Time) {
  return (double)Time.tv_sec + 1e-6 * (double)Time.tv_usec;
}

static void becomeProgram(char **Words) {
  int Output = open("/dev/null", O_WRONLY);
  if (Output >= 0) {
    dup2(Output, STDOUT_FILENO);
    dup2(Output, STDERR_FILENO);
  }
  lseek(STDIN_FILENO, 0, SEEK_SET); // the run before may have read it
  execv(Words[0], Words);
  _exit(127);
}

/// Prints a line for each run: user and system seconds, the core cycles in a
/// tick before and after it, and how it ended.
int runProgram(int Count, char **Words) {
  printf("ticks_per_second %.0f\n", ticksPerSecond());
  for (int I = 0; I < Count; I++) {
    struct rusage Used;
    int Status;
    double Before = cyclesPerTick();
    pid_t Child = fork();
    if (Child < 0) {
      perror("fork");
      return 1;
    }
    if (!Child)
      becomeProgram(Words);
    wait4(Child, &Status, 0, &Used);
    double After = cyclesPerTick();
    printf("run %.6f %.6f %.6f %.6f %d\n", seconds(Used.ru_utime),
           seconds(Used.ru_stime), Before, After,
           WIFEXITED(Status) ? WEXITSTATUS(Status) : -WTERMSIG(Status));
    fflush(stdout);
  }
  return 0;
}
