/* Preloaded into a compiler, makes the children of trials end badly, as a bug of the compiler would.

   The last that a child does before it goes on with the allocation is to send its standard error
   elsewhere, by dup2(). TRIAL_ENDS_BY says what happens then, TRIAL_NUMBER in which trial (all). */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

static int forks;

pid_t fork(void) {
  pid_t (*real)(void) = (pid_t (*)(void))dlsym(RTLD_NEXT, "fork");
  ++forks;
  return real();
}

int dup2(int from, int to) {
  int (*real)(int, int) = (int (*)(int, int))dlsym(RTLD_NEXT, "dup2");
  const int result = real(from, to);
  const char *how = getenv("TRIAL_ENDS_BY"), *number = getenv("TRIAL_NUMBER");
  if (!how || to != STDERR_FILENO || (number && atoi(number) != forks))
    return result;
  if (!strcmp(how, "segmentation fault"))
    raise(SIGSEGV);
  if (!strcmp(how, "abort"))
    abort();
  if (!strcmp(how, "exit"))
    exit(0);
  if (!strcmp(how, "time")) {
    /* The plugin's own limit takes longer than a test should. */
    const struct rlimit second = {1, 10};
    setrlimit(RLIMIT_CPU, &second);
    for (volatile unsigned i = 0;; ++i)
      ;
  }
  if (!strcmp(how, "never"))
    for (;;)
      pause();
  return result;
}
