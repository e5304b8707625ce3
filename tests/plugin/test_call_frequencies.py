"""How often calls run: by the loops around them, down the call graph, and by a profile."""

import numpy as np
import pytest

from nestor.problems.inlining_size.features.site import FREQUENCIES
from tests.plugin.support import NEVER, Workbench, random_forest
from tests.plugin.test_site_features import PROFILED

LOOPS = """
extern int sink(int);
static int leaf(int v) { return sink(v) + sink(v + 1); }
static int rare(int v) { return sink(v) - 1; }
static int middle(int n) {
  int sum = 0;
  for (int i = 0; i < n; ++i) {
    sum += leaf(i);
    if (__builtin_expect(sum == 77, 0)) sum += rare(i);
  }
  return sum;
}
int outer(int n) {
  int sum = 0;
  for (int i = 0; i < n; ++i)
    for (int j = 0; j < n; ++j) sum += middle(i + j);
  return sum + middle(1);
}
"""


Calls = dict[tuple[str, str], list[dict[str, int]]]


def sites(bench: Workbench, source: str, **options: str) -> Calls:
    """Return what was logged where nothing is inlined, by caller and callee, seldom calls first."""
    trajectory = bench.compile(
        source, NEVER, "-nestor-log-names", log=True, flags=["-Oz"], **options
    ).trajectory
    name = trajectory.names
    found: Calls = {}
    for row in trajectory.decisions:
        key = name[int(row["caller"]) % 2**64], name[int(row["callee"]) % 2**64]
        found.setdefault(key, []).append({feature: int(row[feature]) for feature in FREQUENCIES})
    return {key: sorted(rows, key=lambda r: r["call_frequency"]) for key, rows in found.items()}


def test_loops_say_how_often_a_call_runs(bench: Workbench) -> None:
    found = sites(bench, LOOPS)
    (leaf,), (rare,) = found["middle", "leaf"], found["middle", "rare"]
    once, nested = found["outer", "middle"]
    assert leaf["call_loop_depth"] == rare["call_loop_depth"] == 1
    assert (once["call_loop_depth"], nested["call_loop_depth"]) == (0, 2)
    assert once["call_frequency"] == 1000
    assert nested["call_frequency"] > leaf["call_frequency"] > 10_000
    assert rare["call_frequency"] < leaf["call_frequency"] / 10


def test_entries_come_down_the_call_graph(bench: Workbench) -> None:
    found = sites(bench, LOOPS)
    (leaf,), (once, nested) = found["middle", "leaf"], found["outer", "middle"]
    assert once["caller_entries"] == 1000
    calls = once["call_frequency"] + nested["call_frequency"]
    assert leaf["caller_entries"] == once["callee_entries"] == pytest.approx(calls, rel=1e-3)
    product = leaf["caller_entries"] * leaf["call_frequency"] / 1000
    assert leaf["call_executions"] == pytest.approx(product, rel=1e-3)
    assert leaf["callee_entries"] == pytest.approx(product, rel=1e-3)
    assert once["callee_executed"] > leaf["callee_executed"] > 3


def test_a_profile_says_it_better(bench: Workbench) -> None:
    found = sites(bench, PROFILED, name="unit.ll")
    shares = {
        callee: row["call_profile_share"]
        for (_, callee), rows in found.items()
        for row in rows[-1:]
    }
    assert shares["hot"] == pytest.approx(5e8, rel=0.01)  # 100,000 of 200,000 blocks
    assert shares["cold"] == 0
    lacking = PROFILED.replace("define i32 @f(i32 %v) !prof !1 {", "define i32 @f(i32 %v) {")
    assert lacking != PROFILED
    rows = sites(bench, lacking, name="unit.ll")["f", "hot"]
    assert {row["call_profile_share"] for row in rows} == {-2}


@pytest.mark.parametrize("features", [("call_executions",), ("caller_entries",), FREQUENCIES])
def test_both_advisors_compute_the_same(bench: Workbench, features: tuple[str, ...]) -> None:
    policy = random_forest(features, np.array([[0.0], [1000.0]]).repeat(len(features), 1), 7)
    for source, name in ((LOOPS, "unit.c"), (PROFILED, "unit.ll")):
        full = bench.compile(source, policy, log=True, name=name)
        assert bench.compile(source, policy, name=name).bytes == full.bytes
