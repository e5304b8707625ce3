/* Preloaded into a program that is measured, so that the same binary executes the same
   instructions each time: some programs draw the seed of a hash table from the clock. Every look
   at any clock is a thousandth of a second after the one before it. */

#include <sys/time.h>
#include <time.h>

static long long Milliseconds = 1700000000000LL;

static long long now(void) { return Milliseconds++; }

time_t time(time_t *Result) {
  time_t Seconds = (time_t)(now() / 1000);
  if (Result)
    *Result = Seconds;
  return Seconds;
}

int gettimeofday(struct timeval *restrict Result, void *restrict Zone) {
  long long Time = now();
  (void)Zone;
  Result->tv_sec = (time_t)(Time / 1000);
  Result->tv_usec = (suseconds_t)(Time % 1000 * 1000);
  return 0;
}

int clock_gettime(clockid_t Clock, struct timespec *Result) {
  long long Time = now();
  (void)Clock;
  Result->tv_sec = (time_t)(Time / 1000);
  Result->tv_nsec = (long)(Time % 1000 * 1000000);
  return 0;
}

clock_t clock(void) { return (clock_t)((now() - 1700000000000LL) * (CLOCKS_PER_SEC / 1000)); }
