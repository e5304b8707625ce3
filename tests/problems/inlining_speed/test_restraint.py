"""Where a learned policy keeps to the default."""

from dataclasses import replace

import numpy as np
import pytest

from nestor.learn.distil.gain_network import Network
from nestor.learn.distil.gain_trees import Trees
from nestor.policy.metadata import Metadata
from nestor.policy.spec import PolicyError
from nestor.policy.trees import TreesPolicy
from nestor.problem.problem import ProblemError
from nestor.problem.registry import find_problem

PROBLEM = find_problem("inlining-speed")
NAMES = PROBLEM.features.unit
CALL = {
    "call_profile_share": -1.0,
    "cost_estimate": 400.0,
    "caller_call_uses": 0.0,
    "caller_instructions": 20.0,
    "callee_is_discardable": 1.0,
    "callee_call_uses": 3.0,
}
"""Of a call that may be inlined against the default, and be kept against it."""


def eager(names: tuple[str, ...]) -> TreesPolicy:
    """Return a policy that always deviates."""
    return TreesPolicy(
        Metadata("trees", names, "deviation", "none", {}, problem=PROBLEM.name),
        root=np.zeros(1, np.int32),
        feature=np.full(1, -1, np.int32),
        threshold=np.zeros(1),
        left=np.zeros(1, np.int32),
        right=np.zeros(1, np.int32),
        value=np.ones(1),
    )


@pytest.mark.parametrize(
    ("default", "changed", "deviates"),
    [
        (0, {}, True),
        (0, {"caller_call_uses": 1}, False),  # a small caller that is called here
        (0, {"caller_call_uses": 1, "caller_instructions": 46}, True),
        (0, {"cost_estimate": 2001}, False),
        (0, {"call_profile_share": 0}, False),  # the compiler has a profile itself
        (1, {"call_profile_share": 1000}, False),
        (0, {"call_profile_share": -2}, False),
        (1, {}, True),
        (1, {"cost_estimate": 50}, False),  # hardly larger than the call
        (1, {"callee_call_uses": 1}, False),  # its code would only move
        (1, {"callee_call_uses": 1, "callee_is_discardable": 0}, True),
        (1, {"cost_estimate": 2001}, True),
    ],
)
def test_deviations(default: int, changed: dict[str, float], deviates: bool) -> None:
    call = {**CALL, **changed, "inlining_default": float(default)}
    row = np.array([[call.get(name, 0.0) for name in NAMES]])
    found = PROBLEM.restrained(eager(NAMES))
    assert (found.logits(row) > 0).tolist() == [deviates]


def test_its_range_is_kept_and_its_features_are_needed() -> None:
    within = np.tile([0.0, 5.0], (len(NAMES), 1))
    found = PROBLEM.restrained(replace(eager(NAMES), range=within))
    assert found.range is not None
    assert found.range.tolist() == within.tolist()
    with pytest.raises(PolicyError, match="needs a policy that reads it"):
        PROBLEM.restrained(eager(("inlining_default",)))


def test_networks_are_refused_in_one_sentence() -> None:
    PROBLEM.restrained(Trees().nothing(NAMES, PROBLEM.name))
    with pytest.raises(ProblemError, match=r"restrains trees alone: take --distil\.model trees\.$"):
        PROBLEM.restrained(Network().nothing(NAMES, PROBLEM.name))
