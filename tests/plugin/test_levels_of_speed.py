"""A policy for speed acts on the functions that are not to be small, and on no others."""

import numpy as np
import pytest

from nestor.problem.registry import find_problem
from tests.plugin.support import CXX_SOURCE, SOURCE, Workbench
from tests.plugin.test_levels import MIXED, SMALL

PROBLEM = find_problem("inlining-speed")
ALWAYS, NEVER = (PROBLEM.policy(name).policy for name in ("always", "never"))
REMARK = "no function is compiled for speed (-O2, -O3)"


@pytest.mark.parametrize("level", ["-Oz", "-Os", "-O3 -Oz"])
def test_where_code_is_to_be_small_the_object_is_stock(bench: Workbench, level: str) -> None:
    stock = bench.compile(SOURCE, flags=level.split())
    for log in (False, True):
        done = bench.compile(SOURCE, ALWAYS, flags=level.split(), log=log)
        assert done.bytes == stock.bytes
        assert f"unit.c: {REMARK}" in done.stderr
        assert done.stderr.count("\n") == 1


@pytest.mark.parametrize("level", ["-O2", "-O3"])
@pytest.mark.parametrize(("source", "name"), [(SOURCE, "unit.c"), (CXX_SOURCE, "unit.cpp")])
def test_it_acts_at_its_levels(bench: Workbench, level: str, source: str, name: str) -> None:
    stock = bench.compile(source, flags=[level], name=name)
    full = bench.compile(source, NEVER, flags=[level], log=True, name=name)
    assert full.stderr == ""
    assert full.bytes != stock.bytes
    assert full.trajectory.by_policy.all()
    assert bench.compile(source, NEVER, flags=[level], name=name).bytes == full.bytes


def test_functions_that_are_to_be_small_are_not_the_policys(bench: Workbench) -> None:
    trajectory = bench.compile(
        MIXED, NEVER, "-nestor-log-names", flags=["-O2"], log=True
    ).trajectory
    callers = [trajectory.names[int(c) % 2**64] for c in trajectory.decisions["caller"]]
    assert (trajectory.by_policy == ~np.isin(callers, SMALL)).all()
