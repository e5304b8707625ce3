"""Trials as a rule beside trees, and what a log says of trials to come."""

import numpy as np
import pytest

from nestor.policy import bundle
from nestor.policy.branches import RULED
from nestor.policy.names import named_policy
from nestor.policy.spec import PolicyError
from nestor.policy.trees import TreesPolicy
from nestor.problems.inlining_size.builtins import DATA, constant
from nestor.problems.inlining_size.summary.decisions import _TYPICAL_SAVING as SURE
from nestor.problems.inlining_size.summary.decisions import expected_savings
from nestor.problems.inlining_size.summary.program_summary import function_id, parse
from nestor.problems.inlining_size.summary_rules import (
    inline_only_calls,
    leave_inlined_comdats,
    leave_what_stays,
)
from nestor.problems.inlining_size.trial_rules import (
    CALLS,
    COPIED,
    INSTRUCTIONS,
    PERMILLE,
    SAVED,
    CallerTrials,
    Limits,
    Worth,
    expected_extent,
    inline_what_saves,
    inline_where_callers_shrink,
)
from nestor.problems.inlining_size_os.builtins import BUILTINS as AT_OS
from tests.plugin.conftest import bench as bench
from tests.plugin.support import Workbench, leaf
from tests.problems.inlining_size.test_summary_rules import LIMIT, TREES

WORTH = Worth(bytes=8, permille=10)
HOLDS = {
    "program_link_gc": 1.0,
    "callee_uses": 2.0,
    CALLS: 8.0,
    COPIED: 30.0,
    INSTRUCTIONS: 600.0,
    SAVED: 8.0,
    PERMILLE: 10.0,
}
ONE_CALL = {
    "program_link_gc": 1.0,
    "callee_uses": 1.0,
    CALLS: 1.0,
    "callee_instructions": 9.0,
    "program_callee_bytes": 40.0,
    "cost_estimate": 150.0,
}


@pytest.fixture(scope="module")
def trees() -> TreesPolicy:
    policy = bundle.load(TREES)
    assert isinstance(policy, TreesPolicy)
    return policy


def test_the_packaged_policies_are_made_so(trees: TreesPolicy) -> None:
    with_rules = inline_what_saves(inline_only_calls(trees, LIMIT), WORTH, with_summary=True)
    with_rules = leave_inlined_comdats(leave_what_stays(with_rules))
    assert bundle.to_bytes(with_rules) == (DATA / "distilled.safetensors").read_bytes()
    at_os = named_policy("shipped-os", AT_OS).policy
    assert at_os is not None
    assert at_os.metadata.provenance["trials"] == {
        "bytes": 8,
        "permille": 10,
        "calls": 8,
        "copied": 30,
        "instructions": 600,
    }


def test_the_packaged_policy_for_lto_is_made_so() -> None:
    """No summary is read there, nor is anything inlined for its sake."""
    fitted = bundle.load(DATA / "shipped-lto.safetensors")
    assert isinstance(fitted, TreesPolicy)
    limits = Limits(calls=12, copied=120, instructions=2000)
    policy = inline_what_saves(fitted, WORTH, with_summary=False, limits=limits)
    policy = inline_where_callers_shrink(policy, CallerTrials())
    assert bundle.to_bytes(policy) == (DATA / "distilled-lto.safetensors").read_bytes()
    assert not any(name.startswith("program_") for name in policy.features)


def test_the_rule_needs_all_of_its_conditions(trees: TreesPolicy) -> None:
    policy = inline_what_saves(trees, WORTH, with_summary=True)
    assert policy.range is not None

    def ruled(values: dict[str, float]) -> bool:
        row = np.maximum(policy.range[:, 0], 0)  # type: ignore[index]
        for name, value in values.items():
            row[policy.features.index(name)] = value
        return bool(policy.logits(row[None])[0] > RULED)

    assert ruled(HOLDS) and not ruled({})
    for name, value in (
        ("inlining_default", 1),
        ("program_link_gc", -1),
        (SAVED, 7),
        (PERMILLE, 9),
        ("caller_is_cold", 1),  # the trees never saw one
    ):
        assert not ruled(HOLDS | {name: value}), name
    assert ruled(HOLDS | {SAVED: 2.0**40, PERMILLE: 1000.0})
    assert ruled(ONE_CALL)
    for other, value in (
        ("inlining_default", 1),
        ("program_link_gc", -1),
        (CALLS, 0),
        (CALLS, 9),
        (COPIED, 31),
        (INSTRUCTIONS, 601),
        ("callee_uses", 2),
        ("callee_instructions", 201),
        ("caller_instructions", 301),
        ("cost_estimate", 151),
        ("program_callee_bytes", 0),
        ("program_callee_bytes", 1001),
    ):
        assert not ruled(ONE_CALL | {other: value}), other
    assert ruled(HOLDS | {"program_link_gc": 0}) and ruled(ONE_CALL | {"program_link_gc": 0})
    everywhere = inline_what_saves(trees, WORTH, with_summary=False)
    row = np.maximum(everywhere.range[:, 0], 0)  # type: ignore[index]
    row[-5:] = 2, 30, 600, 8, 10
    assert everywhere.logits(row[None])[0] > RULED
    wider = inline_what_saves(trees, WORTH, with_summary=False, limits=Limits(9, 99, 999))
    row[-5:] = 9, 99, 999, 8, 10
    assert everywhere.logits(row[None])[0] <= RULED < wider.logits(row[None])[0]


def test_elsewhere_the_logits_are_the_same(trees: TreesPolicy) -> None:
    policy = inline_what_saves(trees, WORTH, with_summary=True)
    assert trees.range is not None
    random = np.random.default_rng(0)
    low, high = trees.range[:, 0], np.minimum(trees.range[:, 1], 60)
    x = random.integers(low.astype(int), high.astype(int) + 1, (2000, len(low))).astype(float)
    tried = random.integers(0, 8, (2000, 2))
    wider = np.concatenate([x, np.zeros((2000, 3)), tried], axis=1)
    assert (policy.logits(wider) == trees.logits(x)).all()
    assert (trees.logits(x) > 0).any()


def test_what_costs_bytes_is_kept(trees: TreesPolicy) -> None:
    """Whatever the trees expect, but where a rule says so for another reason."""
    policy = inline_what_saves(leaf(FEATURES, 1.0), WORTH, with_summary=True)
    holds = {"program_link_gc": 1, CALLS: 1, "program_callee_bytes": 40}
    row = np.array([holds.get(name, 0) for name in policy.features], float)
    for saved, expected in ((-1, False), (0, True), (7, True), (8, True)):
        row[-2:] = saved, saved
        assert (policy.logits(row[None])[0] > 0) == expected, saved
    row[-2:] = -1, 0
    for name, value in (("program_link_gc", -1), ("inlining_default", 1), ("callee_uses", 1)):
        other = row.copy()
        other[policy.features.index(name)] = value
        assert policy.logits(other[None])[0] > 0, name


def test_other_policies_and_limits_are_refused(trees: TreesPolicy) -> None:
    with pytest.raises(PolicyError, match="where to deviate"):
        inline_what_saves(constant(inline=True), WORTH, with_summary=True)
    with pytest.raises(PolicyError, match="and once"):
        inline_what_saves(
            inline_what_saves(trees, WORTH, with_summary=True), WORTH, with_summary=True
        )
    blind = leaf(("cost_estimate",), -1.0)
    with pytest.raises(PolicyError, match="needs a policy that reads it"):
        inline_what_saves(blind, WORTH, with_summary=True)
    with pytest.raises(PolicyError, match="at least 1 byte"):
        Worth(bytes=0, permille=10)


FEATURES = (
    "inlining_default",
    "cost_estimate",
    "callee_uses",
    "callee_is_local",
    "callee_address_taken",
    "callee_instructions",
    "caller_instructions",
    "program_callee_copies",
    "program_callee_bytes",
    "program_callee_users",
    "program_callee_address_taken",
    "program_link_gc",
)
CAN_BE = {
    "program_link_gc": 1.0,
    "callee_uses": 4.0,
    "callee_instructions": 10.0,
    "caller_instructions": 590.0,
    "program_callee_copies": 1.0,
}
SOURCE = """
extern int sink(int);
int open(int v) { return sink(v) + sink(-v) * v; }
static int local(int v) { return sink(v) - sink(-v) * v; }
int run(int v) { return open(v) + open(v + 1) + local(v) - local(2 * v); }
"""


def test_what_there_is_to_try() -> None:
    def extent(values: dict[str, float]) -> tuple[float, ...]:
        found = expected_extent({n: np.array([values.get(n, 0.0)]) for n in FEATURES})
        return tuple(float(value) for (value,) in found.values())

    assert extent(CAN_BE) == (4, 30, 600)
    for name, value in (
        ("callee_address_taken", 1),
        ("program_link_gc", 0),
        ("program_callee_copies", 2),
        ("program_callee_copies", -1),
        ("program_callee_users", 1),
        ("program_callee_address_taken", 1),
    ):
        assert extent(CAN_BE | {name: value}) == (0, 0, 0), name
    for name, value in (("program_callee_copies", -1), ("program_link_gc", 0)):
        assert extent(CAN_BE | {name: value, "callee_is_local": 1}) == (4, 30, 600), name


def test_trials_to_come_are_hoped_for_once_a_function(bench: Workbench) -> None:
    """A log of stock says nothing of trials, and a compile under the policy tries."""
    policy = inline_what_saves(leaf(FEATURES, -1.0), WORTH, with_summary=True)
    log = bench.compile(SOURCE, "default", log=True).trajectory
    summary = "nestor-program 1\nlink gc\n"
    local, both = (
        expected_savings(policy, [log], parse(text))[0]
        for text in (summary, f"{summary}function {function_id('open'):016x} 1 60 2 0 0\n")
    )
    assert both == 2 * local > 0
    once = bench.compile(SOURCE.replace("+ open(v + 1) ", ""), "default", log=True).trajectory
    one_call = f"{summary}function {function_id('open'):016x} 1 60 1 0 0\n"
    assert expected_savings(policy, [once], parse(one_call)) == [local + SURE]
    no_gc = parse("nestor-program 1\nlink no-gc\n")
    assert expected_savings(policy, [log, log], no_gc) == [local, local]
    # Of calls that are inlined unless a trial says otherwise, little is hoped for; not nothing.
    eager = inline_what_saves(leaf(FEATURES, 1.0), WORTH, with_summary=True)
    inlined = bench.compile(SOURCE, leaf(FEATURES, 1.0), log=True).trajectory
    (more,) = expected_savings(eager, [inlined], parse(summary))
    assert 0 < more < local
    assert expected_savings(leaf(FEATURES, -1.0), [log], parse(summary)) == [0.0]
