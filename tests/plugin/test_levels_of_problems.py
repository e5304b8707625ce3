"""Policies for -Os and for speed act on the functions of their levels, and on no others."""

from dataclasses import dataclass

import numpy as np
import pytest

from nestor.policy.spec import Policy
from nestor.problem.registry import find_problem
from tests.plugin.support import CXX_SOURCE, SOURCE, Workbench
from tests.plugin.test_levels import MIXED, SMALL


@dataclass(frozen=True)
class Of:
    """One problem."""

    problem: str
    remark: str

    def policy(self, name: str) -> Policy:
        found = find_problem(self.problem).policy(name).policy
        assert found is not None
        return found


OS = Of("inlining-size-os", "no function is compiled at -Os")
SPEED = Of("inlining-speed", "no function is compiled for speed (-O2, -O3)")
OTHERS = [(OS, "-Oz"), (OS, "-O2"), (OS, "-Os -Oz"), (OS, "-O3")]
OTHERS += [(SPEED, "-Oz"), (SPEED, "-Os"), (SPEED, "-O3 -Oz")]


@pytest.mark.parametrize(("of", "level"), OTHERS)
def test_at_another_level_the_object_is_stock(bench: Workbench, of: Of, level: str) -> None:
    stock = bench.compile(SOURCE, flags=level.split())
    for log in (False, True):
        done = bench.compile(SOURCE, of.policy("always"), flags=level.split(), log=log)
        assert done.bytes == stock.bytes
        assert f"unit.c: {of.remark}" in done.stderr
        assert done.stderr.count("\n") == 1


@pytest.mark.parametrize(("of", "level"), [(OS, "-Os"), (SPEED, "-O2"), (SPEED, "-O3")])
@pytest.mark.parametrize(("source", "name"), [(SOURCE, "unit.c"), (CXX_SOURCE, "unit.cpp")])
def test_it_acts_at_its_levels(
    bench: Workbench, of: Of, level: str, source: str, name: str
) -> None:
    never = of.policy("never")
    stock = bench.compile(source, flags=[level], name=name)
    full = bench.compile(source, never, flags=[level], log=True, name=name)
    assert full.stderr == ""
    assert full.bytes != stock.bytes
    assert full.trajectory.by_policy.all()
    assert bench.compile(source, never, flags=[level], name=name).bytes == full.bytes


@pytest.mark.parametrize(("of", "level"), [(OS, "-Os"), (SPEED, "-O2")])
def test_functions_that_are_to_be_smallest_are_not_the_policys(
    bench: Workbench, of: Of, level: str
) -> None:
    never = of.policy("never")
    full = bench.compile(MIXED, never, "-nestor-log-names", flags=[level], log=True)
    trajectory = full.trajectory
    callers = [trajectory.names[int(c) % 2**64] for c in trajectory.decisions["caller"]]
    assert (trajectory.by_policy == ~np.isin(callers, SMALL)).all()
