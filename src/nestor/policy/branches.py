"""Trees written by hand, and trees that count differently on two sides of a feature.

Fitted trees plus such a rule are one policy (:func:`nestor.policy.trees.weighted_sum`).
"""

from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from nestor.policy.spec import PolicyError
from nestor.policy.trees import TreesPolicy

RULED: Final = 2.0**24
"""Logits above are a rule's, which is beyond every sum of fitted trees."""
NEVER: Final = -(2.0**20)
"""What a rule that forbids takes off the logit: more than any sum of fitted trees."""


@dataclass(frozen=True)
class Split:
    """A node: which way a row goes. A number in place of a node is what its rows get."""

    feature: str
    most: float
    """The greatest value of the feature that goes ``below``."""
    below: "Split | float"
    above: "Split | float"


def one_tree(like: TreesPolicy, top: Split | float) -> TreesPolicy:
    """Return the policy of one tree, for the features and answers of ``like``.

    :raises PolicyError: if ``like`` does not read a feature of the tree.
    """
    nodes: list[tuple[int, float, int, int, float]] = []
    level: list[Split | float] = [top]
    while level:
        following: list[Split | float] = []
        first = len(nodes) + len(level)
        for node in level:
            if not isinstance(node, Split):
                nodes.append((-1, 0.0, 0, 0, node))
                continue
            if node.feature not in like.features:
                raise PolicyError(f"a rule about {node.feature} needs a policy that reads it")
            below = first + len(following)
            nodes.append((like.features.index(node.feature), node.most, below, below + 1, 0.0))
            following += (node.below, node.above)
        level = following
    feature, threshold, left, right, value = zip(*nodes, strict=True)
    return replace(
        like,
        root=np.zeros(1, np.int32),
        feature=np.array(feature, np.int32),
        threshold=np.array(threshold, np.float64),
        left=np.array(left, np.int32),
        right=np.array(right, np.int32),
        value=np.array(value, np.float64),
        range=None,
    )


def weighted_by_side(
    policy: TreesPolicy, feature: str, most: float, below: float, above: float
) -> TreesPolicy:
    """Return ``policy`` with its logit times ``below`` up to ``most`` of a feature, else ``above``.

    Every tree stands under a new root twice, so that a row still walks each tree once.

    :raises PolicyError: if the policy does not read ``feature``.
    """
    if feature not in policy.features:
        raise PolicyError(f"a rule about {feature} needs a policy that reads it")
    trees, nodes = len(policy.root), len(policy.feature)
    inner = policy.feature >= 0

    def moved(child: np.ndarray, by: int) -> np.ndarray:
        return np.where(inner, child + by, 0)

    index = policy.features.index(feature)
    return replace(
        policy,
        root=np.arange(trees, dtype=np.int32),
        feature=np.concatenate([np.full(trees, index), policy.feature, policy.feature]).astype(
            np.int32
        ),
        threshold=np.concatenate([np.full(trees, most), policy.threshold, policy.threshold]),
        left=np.concatenate(
            [policy.root + trees, moved(policy.left, trees), moved(policy.left, trees + nodes)]
        ).astype(np.int32),
        right=np.concatenate(
            [
                policy.root + trees + nodes,
                moved(policy.right, trees),
                moved(policy.right, trees + nodes),
            ]
        ).astype(np.int32),
        value=np.concatenate([np.zeros(trees), policy.value * below, policy.value * above]),
        range=None,
    )
