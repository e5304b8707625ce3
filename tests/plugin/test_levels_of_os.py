"""A policy for -Os acts on the functions that are to be small, but not the smallest."""

import numpy as np
import pytest

from nestor.problem.registry import find_problem
from tests.plugin.support import CXX_SOURCE, SOURCE, Workbench
from tests.plugin.test_levels import MIXED, SMALL

PROBLEM = find_problem("inlining-size-os")
ALWAYS, NEVER = (PROBLEM.policy(name).policy for name in ("always", "never"))
REMARK = "no function is compiled at -Os"


@pytest.mark.parametrize("level", ["-Oz", "-O2", "-Os -Oz", "-O3"])
def test_at_another_level_the_object_is_stock(bench: Workbench, level: str) -> None:
    stock = bench.compile(SOURCE, flags=level.split())
    for log in (False, True):
        done = bench.compile(SOURCE, ALWAYS, flags=level.split(), log=log)
        assert done.bytes == stock.bytes
        assert f"unit.c: {REMARK}" in done.stderr
        assert done.stderr.count("\n") == 1


@pytest.mark.parametrize(("source", "name"), [(SOURCE, "unit.c"), (CXX_SOURCE, "unit.cpp")])
def test_it_acts_at_its_level(bench: Workbench, source: str, name: str) -> None:
    """CMake's MinSizeRel compiles so."""
    stock = bench.compile(source, flags=["-Os"], name=name)
    full = bench.compile(source, NEVER, flags=["-Os"], log=True, name=name)
    assert full.stderr == ""
    assert full.bytes != stock.bytes
    assert full.trajectory.by_policy.all()
    assert bench.compile(source, NEVER, flags=["-Os"], name=name).bytes == full.bytes


def test_the_smallest_functions_are_not_the_policys(bench: Workbench) -> None:
    trajectory = bench.compile(
        MIXED, NEVER, "-nestor-log-names", flags=["-Os"], log=True
    ).trajectory
    callers = [trajectory.names[int(c) % 2**64] for c in trajectory.decisions["caller"]]
    assert (trajectory.by_policy == ~np.isin(callers, SMALL)).all()
