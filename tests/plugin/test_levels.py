"""A policy acts on the functions that are compiled at its level, -Oz, and on no others."""

from pathlib import Path

import numpy as np
import pytest

from nestor.policy.names import NamedPolicy
from nestor.policy.spec import Policy
from nestor.problem.identity import Circumstances
from nestor.problems.inlining_size.builtins import threshold
from nestor.problems.inlining_size.in_builds import LEVELS
from nestor.problems.inlining_size.ways import ways
from tests.plugin.support import ALWAYS, CXX_SOURCE, NEVER, SOURCE, Workbench, random_network
from tests.plugin.test_plugin import GROWING

REMARK = "no function is compiled at -Oz"
DEVIATING = random_network(["cost_estimate", "callee_basic_block_count"], 5, answers="deviation")
POLICIES = {"always": ALWAYS, "never": NEVER, "deviating": DEVIATING}

MIXED = SOURCE.replace("int second(", "__attribute__((minsize)) int second(").replace(
    "int third(", "__attribute__((minsize)) int third("
)
SMALL = ("second", "third")


@pytest.mark.parametrize("level", ["-Oz -O3", "-O2", "-Os", "-O1"])
@pytest.mark.parametrize("policy", POLICIES.values(), ids=POLICIES)
def test_at_another_level_the_object_is_stock(bench: Workbench, level: str, policy: Policy) -> None:
    """CMake's build types put -O3 behind -Oz."""
    flags = [*level.split(), "-Werror"]
    stock = bench.compile(SOURCE, flags=flags)
    for log in (False, True):
        done = bench.compile(SOURCE, policy, flags=flags, log=log)
        assert done.bytes == stock.bytes
        assert done.stderr.startswith("nestor: remark: ")
        assert f"unit.c: {REMARK}" in done.stderr
        assert done.stderr.count("\n") == 1
    records = done.trajectory.decisions
    assert len(records)
    assert not records["logit"].any()
    assert not records["log_probability"].any()
    assert (records["answer"] == records["inlining_default"]).all()


def test_at_its_level_a_policy_says_nothing(bench: Workbench) -> None:
    for source, name in ((SOURCE, "unit.c"), (CXX_SOURCE, "unit.cpp")):
        done = bench.compile(source, ALWAYS, flags=["-Os", "-Oz"], name=name)
        assert done.bytes != bench.compile(source, name=name).bytes
        assert done.stderr == ""


@pytest.mark.parametrize("flags", [["-O2"], ["-O0"]])
def test_no_remark_where_there_is_nothing_to_decide(bench: Workbench, flags: list[str]) -> None:
    """Such as the sources by which a configure script tries options."""
    source = "extern int f(void); int main(void) { return f(); }"
    assert bench.compile(source, ALWAYS, flags=flags).stderr == ""
    assert bench.compile(SOURCE, ALWAYS, flags=["-O0"]).stderr == ""
    assert bench.compile(SOURCE, "default", flags=flags).stderr == ""


@pytest.mark.parametrize("policy", POLICIES.values(), ids=POLICIES)
def test_functions_that_are_marked_are_the_policys(bench: Workbench, policy: Policy) -> None:
    full = bench.compile(MIXED, policy, "-nestor-log-names", flags=["-O2"], log=True)
    assert full.stderr == ""
    trajectory = full.trajectory
    callers = [trajectory.names[int(c) % 2**64] for c in trajectory.decisions["caller"]]
    acted = np.isin(callers, SMALL)
    assert 0 < acted.sum() < len(acted)
    assert (trajectory.by_policy == acted).all()
    records = trajectory.decisions
    assert (records["answer"] == records["inlining_default"])[~acted].all()
    if policy in (ALWAYS, NEVER):
        assert (records["answer"][acted] == (policy is ALWAYS)).all()
    assert bench.compile(MIXED, policy, flags=["-O2"]).bytes == full.bytes


def test_overrides_stand_above_any_level(bench: Workbench) -> None:
    before = bench.compile(SOURCE, NEVER, flags=["-O2"], log=True)
    site, answer = next((s, a) for s, a in before.decisions.items() if a)
    after = bench.compile(SOURCE, NEVER, flags=["-O2"], log=True, overrides={site: 1 - answer})
    assert after.decisions[site] == 1 - answer
    assert after.bytes != before.bytes


def test_the_growth_cap_does_not_bind_other_levels(bench: Workbench) -> None:
    """Past the cap the policy's functions get no answer; the others are stock as before."""
    small = "".join(
        f"__attribute__((minsize)) int s{i}(int v) {{ return big(v) + big(v + {i}); }}\n"
        for i in range(8)
    )
    later = "static int tiny(int v) { return sink(v) + 1; }\n" + "".join(
        f"int z{i}(int v) {{ return s{i}(v) * tiny(v) * tiny(v + 1); }}\n" for i in range(8)
    )
    source = GROWING + small + later
    full = bench.compile(source, ALWAYS, "-nestor-log-names", flags=["-O1"], log=True)
    assert full.trajectory.facts["growth_cap_reached"]
    assert full.trajectory.facts["asked_after_growth_cap"] > 0
    assert bench.compile(source, ALWAYS, flags=["-O1"]).bytes == full.bytes
    assert b"\0tiny\0" not in full.bytes


@pytest.mark.parametrize("level", ["-Oz", "-O2"])
def test_the_channel_answers_like_the_plugin(bench: Workbench, level: str) -> None:
    policy = threshold(60)
    named = NamedPolicy.of(policy)
    command: list[str | Path] = [bench.plugin.toolchain.clang, level, "-c", bench.source(SOURCE)]
    objects, counts = set(), set()
    for way in ways(bench.plugin, named, bench.folder, LEVELS):
        out = bench.folder / "way.o"
        count = way.compile(command, out, Circumstances())
        objects.add(out.read_bytes())
        counts |= {count} if way.counts else set()
    assert len(objects) == 1
    assert len(counts) == 1
    stock = bench.compile(SOURCE, flags=[level]).bytes
    assert (objects == {stock}) == (level == "-O2")
