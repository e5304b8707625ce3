"""Policies for -Oz, for -Os and for speed act on the functions of their levels, one or all."""

from dataclasses import dataclass

import numpy as np
import pytest

from nestor.policy.spec import Policy
from nestor.problem.registry import find_problem
from tests.plugin.support import CXX_SOURCE, SOURCE, Workbench
from tests.plugin.test_levels import DEVIATING, MIXED, SMALL
from tests.plugin.test_plugin import GROWING


@dataclass(frozen=True)
class Of:
    """One problem."""

    problem: str
    remark: str

    def policy(self, name: str) -> Policy:
        found = find_problem(self.problem).policy(name).policy
        assert found is not None
        return found


OZ = Of("inlining-size", "no function is compiled at -Oz")
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


def several(bench: Workbench, name: str) -> list[str]:
    """Return the options for policies of this name for every problem."""
    return [f"-nestor-policy={bench.save(of.policy(name))}" for of in (OZ, OS, SPEED)]


@pytest.mark.parametrize(("of", "level"), [(OZ, "-Oz"), (OS, "-Os"), (SPEED, "-O2")])
@pytest.mark.parametrize("name", ["never", "threshold:40"])
def test_of_several_policies_each_decides_at_its_level(
    bench: Workbench, of: Of, level: str, name: str
) -> None:
    for source, file in ((SOURCE, "unit.c"), (CXX_SOURCE, "unit.cpp")):
        alone = bench.compile(source, of.policy(name), flags=[level], name=file, log=True)
        options = several(bench, name)
        full = bench.compile(source, "", *options, flags=[level], name=file, log=True)
        assert full.stderr == ""
        assert full.bytes == alone.bytes
        assert full.decisions == alone.decisions
        assert bench.compile(source, "", *options[::-1], flags=[level], name=file).bytes == (
            full.bytes
        )


def test_in_one_module_each_decides_about_its_functions(bench: Workbench) -> None:
    for name, other in (("always", "never"), ("never", "always")):
        options = [
            f"-nestor-policy={bench.save(OZ.policy(name))}",
            f"-nestor-policy={bench.save(SPEED.policy(other))}",
        ]
        full = bench.compile(MIXED, "", *options, "-nestor-log-names", flags=["-O2"], log=True)
        trajectory = full.trajectory
        callers = [trajectory.names[int(c) % 2**64] for c in trajectory.decisions["caller"]]
        answers = trajectory.decisions["answer"]
        assert trajectory.by_policy.all()
        assert (answers == (np.isin(callers, SMALL) == (name == "always"))).all()
        assert 0 < answers.sum() < len(answers)
        assert bench.compile(MIXED, "", *options, flags=["-O2"]).bytes == full.bytes


def test_past_the_growth_cap_of_one_the_other_leaves_all_to_stock(bench: Workbench) -> None:
    """A policy that deviates has no cap, and sizes are not followed past that of another one."""
    small = "".join(
        f"__attribute__((minsize)) int s{i}(int v) {{ return big(v) + big(v + {i}); }}\n"
        for i in range(8)
    )
    policies = (SPEED.policy("always"), DEVIATING)
    options = [f"-nestor-policy={bench.save(policy)}" for policy in policies]
    full = bench.compile(GROWING + small, "", *options, flags=["-O1"], log=True)
    assert full.trajectory.facts["growth_cap_reached"]
    assert bench.compile(GROWING + small, "", *options, flags=["-O1"]).bytes == full.bytes


def test_none_of_several_decides_elsewhere(bench: Workbench) -> None:
    options = several(bench, "always")[:2]
    done = bench.compile(SOURCE, "", *options, flags=["-O2"])
    assert done.bytes == bench.compile(SOURCE, flags=["-O2"]).bytes
    assert f"{OZ.remark} or at -Os, so the policy decides nothing here" in done.stderr
    assert done.stderr.count("\n") == 1


def test_two_policies_for_the_same_functions_are_refused(bench: Workbench) -> None:
    first, second = (f"-nestor-policy={bench.save(OZ.policy(n))}" for n in ("always", "never"))
    done = bench.compile(SOURCE, "", first, second)
    assert done.returncode != 0
    assert "are both for inlining-size: a compile takes one of them" in done.stderr


def test_a_policy_that_is_not_needed_is_not_read(bench: Workbench) -> None:
    """It has 1.4 MB, and most compiles are of one level."""
    whole = bench.save(OZ.policy("threshold:40"))
    content = whole.read_bytes()
    broken = bench.folder / "broken.safetensors"
    header = content[8 : 8 + int.from_bytes(content[:8], "little")]
    worse = header.replace(b"threshold", b"thresheld").replace(b"decision", b"decizion")
    assert worse != header
    broken.write_bytes(content[:8] + worse + content[8 + len(header) :])
    speed = f"-nestor-policy={bench.save(SPEED.policy('never'))}"
    options = (speed, f"-nestor-policy={broken}")
    assert bench.compile(SOURCE, "", *options, flags=["-O2"]).returncode == 0
    done = bench.compile(SOURCE, "", *options, flags=["-Oz"])
    assert done.returncode != 0
    assert "broken.safetensors" in done.stderr
