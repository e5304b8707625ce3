"""A policy that deviates copies no more instructions than the module has."""

import numpy as np

from nestor.policy.layers import Layer
from nestor.policy.network import LogNormalisation, build
from tests.plugin.support import Workbench

INLINE_ALL = build(
    ("inlining_default",),
    "deviation",
    LogNormalisation(np.zeros(1), np.ones(1)),
    (Layer(np.array([[-2]], np.float32), np.array([1], np.float32)),),
    problem="inlining-size",
)
"""Deviates wherever the default keeps a call."""

# A function of variable arguments cannot be inlined, whatever the answer to its many calls is.
UNINLINABLE = """
extern int sink(int);
extern void keep(__builtin_va_list);
static int report(int n, ...) {
  __builtin_va_list list;
  __builtin_va_start(list, n);
  keep(list);
  sink(n); sink(n + 1); sink(n * n); sink(n - 7); sink(n / 3); sink(n % 5);
  __builtin_va_end(list);
  return n;
}
static int helper(int v) { return sink(v) + sink(v + 1) + sink(v * 3) + sink(v - 2); }
int user(int v) {
  CALLS
  return helper(v) + helper(v + 1);
}
""".replace("CALLS", " ".join(f"report({k}, v);" for k in range(40)))


def test_calls_that_cannot_be_inlined_do_not_count(bench: Workbench) -> None:
    logged = bench.compile(UNINLINABLE, INLINE_ALL, log=True)
    assert not logged.trajectory.facts["growth_cap_reached"]
    assert bench.compile(UNINLINABLE, INLINE_ALL).bytes == logged.bytes
    assert logged.bytes != bench.compile(UNINLINABLE, "default").bytes
