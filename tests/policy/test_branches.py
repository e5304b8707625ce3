"""Trees written by hand, and trees that count differently on two sides of a feature."""

import numpy as np
import pytest

from nestor.policy.branches import Split, one_tree, weighted_by_side
from nestor.policy.metadata import Metadata
from nestor.policy.spec import PolicyError
from nestor.policy.trees import TreesPolicy, weighted_sum

RNG = np.random.default_rng(0)
ROWS = RNG.integers(-2, 3, (200, 2)).astype(np.float64)
RULE = Split("a", 0, Split("b", 1, 3.0, -1.0), 0.5)


@pytest.fixture
def empty() -> TreesPolicy:
    return TreesPolicy(
        Metadata("trees", ("a", "b"), "decision", "none", {}, problem="mine"),
        root=np.zeros(1, np.int32),
        feature=np.full(1, -1, np.int32),
        threshold=np.zeros(1),
        left=np.zeros(1, np.int32),
        right=np.zeros(1, np.int32),
        value=np.array([0.25]),
    )


def by_hand(row: np.ndarray) -> float:
    a, b = row
    if a > 0:
        return 0.5
    return 3.0 if b <= 1 else -1.0


def test_a_tree_answers_as_it_is_written(empty: TreesPolicy) -> None:
    found = one_tree(empty, RULE).logits(ROWS)
    assert found.tolist() == [by_hand(row) for row in ROWS]


def test_a_side_counts_with_its_own_weight(empty: TreesPolicy) -> None:
    whole = weighted_sum([(one_tree(empty, RULE), 1.0), (empty, 2.0)])
    found = weighted_by_side(whole, "b", 0.0, 1.0, -2.0).logits(ROWS)
    weight = np.where(ROWS[:, 1] <= 0, 1.0, -2.0)
    assert found == pytest.approx(weight * whole.logits(ROWS))
    assert len(set(np.sign(found))) == 2


def test_a_rule_about_a_feature_that_is_not_read_is_refused(empty: TreesPolicy) -> None:
    with pytest.raises(PolicyError, match="a rule about c needs a policy that reads it"):
        one_tree(empty, Split("a", 0, Split("c", 0, 0.0, 0.0), 1.0))
    with pytest.raises(PolicyError, match="a rule about c needs"):
        weighted_by_side(empty, "c", 0.0, 1.0, -1.0)
