"""Overrides by callee and by module; those by site are in test_plugin."""

import numpy as np
import pytest

from nestor.policy.spec import Policy
from nestor.problem.trajectory import Trajectory
from nestor.problems.inlining_size.search.overrides import parse
from nestor.problems.inlining_size.search.question_keys import SiteOverrides
from nestor.problems.inlining_size.summary.program_summary import function_id, module_id
from tests.plugin.support import ALWAYS, NEVER, SOURCE, Workbench, random_forest, random_network

HEAD = "nestor-overrides 1\n"
LEAN = ["cost_estimate", "callee_basic_block_count", "nr_ctant_params"]


def local(name: str) -> str:
    return f"{function_id(name, 'unit.c'):016x}"


def of(trajectory: Trajectory, callee: str) -> list[int]:
    rows = trajectory.decisions["callee"].view("u8") == function_id(callee, "unit.c")
    return [int(answer) for answer in trajectory.decisions["answer"][rows]]


def unmatched(text: str, trajectory: Trajectory) -> list[str]:
    """Return the lines of which the compile asked nothing."""
    asked = SiteOverrides().question_keys([trajectory])
    return [
        line
        for line, key in zip(text.splitlines()[1:], parse(text), strict=True)
        if not asked.matched_by(key)
    ]


def test_ids_are_those_of_the_log(bench: Workbench) -> None:
    trajectory = bench.compile(SOURCE, NEVER, "-nestor-log-names", log=True).trajectory
    exported = {"first", "second", "third", "fourth", "ballast"}
    for key, name in trajectory.names.items():
        assert key == function_id(name, None if name in exported else "folder/unit.c")


@pytest.mark.parametrize("policy", [NEVER, ALWAYS, "default"], ids=["never", "always", "default"])
@pytest.mark.parametrize("answer", ["inline", "keep"])
def test_a_callee_line_answers_for_all_its_sites(
    bench: Workbench, policy: Policy | str, answer: str
) -> None:
    text = f"{HEAD}callee {local('middle')} {answer}\n"
    full = bench.compile(SOURCE, policy, overrides=text, log=True)
    trajectory = full.trajectory
    assert set(of(trajectory, "middle")) == {int(answer == "inline")}
    overridden = trajectory.decisions[trajectory.decisions["overridden"] == 1]
    assert len(overridden) == len(of(trajectory, "middle"))
    if policy != "default":
        assert set(of(trajectory, "small")) == {int(policy is ALWAYS)}
    assert unmatched(text, trajectory) == []
    assert bench.compile(SOURCE, policy, overrides=text).bytes == full.bytes


def test_a_site_stands_above_its_callee(bench: Workbench) -> None:
    text = f"{HEAD}callee {local('middle')} keep\n"
    records = bench.compile(SOURCE, NEVER, log=True).trajectory.decisions
    site = next(
        int(row["site"]) & 2**64 - 1
        for row in records
        if int(row["callee"]) & 2**64 - 1 == function_id("middle", "unit.c")
    )
    text += f"site {site:016x} inline\n"
    full = bench.compile(SOURCE, NEVER, overrides=text, log=True)
    assert sorted(of(full.trajectory, "middle"))[-2:] == [0, 1]
    assert unmatched(text, full.trajectory) == []
    assert bench.compile(SOURCE, NEVER, overrides=text).bytes == full.bytes


def test_lines_of_other_modules_change_nothing(bench: Workbench) -> None:
    text = f"{HEAD}callee {local('gone')} keep\nmodule {module_id('other.c'):016x} stock\n"
    full = bench.compile(SOURCE, ALWAYS, overrides=text, log=True)
    assert unmatched(text, full.trajectory) == text.splitlines()[1:]
    assert full.bytes == bench.compile(SOURCE, ALWAYS).bytes


@pytest.mark.parametrize("seeded", [False, True])
def test_in_a_stock_module_the_policy_is_not_asked(bench: Workbench, seeded: bool) -> None:
    text = f"{HEAD}module {module_id('folder/unit.c'):016x} stock\n"
    stock = bench.compile(SOURCE).bytes
    options = ["-nestor-seed=5"] if seeded else []
    for policy in (ALWAYS, NEVER, random_network(LEAN, 5, answers="deviation")):
        full = bench.compile(SOURCE, policy, *options, overrides=text, log=True)
        records = full.trajectory.decisions
        assert (records["answer"] == records["inlining_default"]).all()
        assert not records["logit"].any()
        lean = bench.compile(SOURCE, policy, *options, overrides=text)
        assert full.bytes == lean.bytes == stock


def test_a_module_is_decided_without_the_summary(bench: Workbench) -> None:
    features = ["cost_estimate", "program_callee_calls", "program_link_gc"]
    policy = random_forest(features, np.array([[-20.0, -1, -1], [60, 4, 2]]), 7)
    known = f"function {local('small')} 1 40 1 0 0\nfunction {local('middle')} 1 90 3 0 0\n"
    program = f"nestor-program 1\nlink gc\n{known}"
    text = f"{HEAD}module {module_id('unit.c'):016x} no-summary\n"
    alone = bench.compile(SOURCE, policy).bytes
    informed = bench.compile(SOURCE, policy, program=program)
    assert informed.bytes != alone
    for log in (False, True):
        without = bench.compile(SOURCE, policy, program=program, overrides=text, log=log)
        assert without.bytes == alone
    other = text.replace(f"{module_id('unit.c'):016x}", f"{module_id('other.c'):016x}")
    assert bench.compile(SOURCE, policy, program=program, overrides=other).bytes == informed.bytes


def test_other_lines_stand_above_a_stock_module(bench: Workbench) -> None:
    text = f"{HEAD}module {module_id('unit.c'):016x} stock\ncallee {local('small')} keep\n"
    full = bench.compile(SOURCE, ALWAYS, overrides=text, log=True)
    assert set(of(full.trajectory, "small")) == {0}
    lean = bench.compile(SOURCE, ALWAYS, overrides=text).bytes
    alone = bench.compile(SOURCE, "default", overrides=f"{HEAD}callee {local('small')} keep\n")
    assert lean == full.bytes == alone.bytes


def test_a_policy_that_cannot_be_used_is_refused_in_a_stock_module_too(bench: Workbench) -> None:
    text = f"{HEAD}module {module_id('unit.c'):016x} stock\n"
    result = bench.compile(SOURCE, random_network(["star_sign"]), overrides=text)
    assert result.returncode == 1
    assert "star_sign" in result.stderr
