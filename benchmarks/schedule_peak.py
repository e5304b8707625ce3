"""How many multiply-adds one core can do at most: independent chains of vector FMAs, measured."""

import subprocess
from pathlib import Path

from nestor.files import write_atomically
from nestor.schedules.target import Target
from nestor.schedules.tools import Tools
from nestor.temporary import temporary_folder

_SOURCE = """
#include <stdio.h>
#include <time.h>
typedef float V __attribute__((vector_size(%d)));
static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec + 1e-9 * t.tv_nsec;
}
int main(void) {
  enum { chains = 12, steps = 1000000, lanes = sizeof(V) / sizeof(float) };
  double best = 0;
  for (int run = 0; run < 20; ++run) {
    V a[chains], x = {0}, y = {0};
    for (int i = 0; i < chains; ++i) a[i] = x + (float)i;
    x += 0.5f;
    y += 1e-3f;
    __asm__ volatile("" : "+v"(x), "+v"(y));
    double start = now();
    for (long s = 0; s < steps; ++s)
      for (int i = 0; i < chains; ++i) {
        a[i] = a[i] * x + y;
        __asm__ volatile("" : "+v"(a[i]));
      }
    double speed = 2.0 * lanes * chains * steps / (now() - start);
    if (speed > best) best = speed;
    volatile float kept = 0;
    for (int i = 0; i < chains; ++i) kept += a[i][0];
  }
  printf("%%f\\n", best);
}
"""


def fma_peak(target: Target, tools: Tools) -> float:
    """Return the measured peak of one core of this machine in floating-point operations a second.

    A multiply-add of float32 counts as two.
    """
    with temporary_folder("peak") as name:
        source, program = Path(name) / "peak.c", Path(name) / "peak"
        write_atomically(source, _SOURCE % (target.vector_bits // 8))
        words = [tools.clang, "-O2", "-ffp-contract=fast", *target.flags, source, "-o", program]
        subprocess.run([str(word) for word in words], check=True)
        done = subprocess.run([program], check=True, capture_output=True, text=True)
    return float(done.stdout)
