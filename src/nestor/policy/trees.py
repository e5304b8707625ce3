"""Sums of binary regression trees, and their import from LightGBM."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Protocol

import numpy as np
from numpy.typing import NDArray

from nestor.policy.spec import (
    DEFAULT_RULE,
    F64,
    Array,
    Metadata,
    Policy,
    PolicyError,
    shown,
    tensor,
)

I32 = NDArray[np.int32]

MAX_NODES: Final = 1 << 22
MAX_TREES: Final = 1 << 16
MAX_HEIGHT: Final = 512

# Walks (a tree for a row) under way at once: bounds the memory, keeps the arrays in the cache.
_BLOCK: Final = 1 << 18

# From this number of rows on, nodes sort rows; below it, walks take steps together.
_MANY_ROWS: Final = 1024

# Objectives whose raw score is a number that one decision's gain can be read from.
_OBJECTIVES: Final = frozenset(
    {"binary", "fair", "huber", "mape", "quantile", "regression", "regression_l1"}
)


ANY_VALUE: Final = 2.0**53
"""More than any value of a feature."""
_ARRAYS: Final = ("root", "feature", "threshold", "left", "right", "value")


@dataclass(frozen=True, eq=False)
class TreesPolicy(Policy):
    """
    T trees over N nodes, the arrays as in docs/reference/formats.md; raises PolicyError if unfit.

    `root` i32 [T]; `feature`, `left`, `right` i32 [N]; `threshold`, `value` f64 [N].
    """

    root: I32
    feature: I32
    threshold: F64
    left: I32
    right: I32
    value: F64

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.metadata.kind != "trees":
            raise PolicyError("its kind must be that of its tensors")
        for name in ("root", "feature", "left", "right"):
            object.__setattr__(self, name, tensor(f"tree.{name}", getattr(self, name), np.int32, 1))
        for name in ("threshold", "value"):
            array = tensor(f"tree.{name}", getattr(self, name), np.float64, 1)
            object.__setattr__(self, name, array)
        nodes = len(self.feature)
        if len(self.root) > MAX_TREES or nodes > MAX_NODES:
            raise PolicyError(f"it has more than {MAX_TREES} trees or {MAX_NODES} nodes")
        for name in ("threshold", "left", "right", "value"):
            if len(getattr(self, name)) != nodes:
                raise PolicyError(f"tree.{name} must have as many elements as tree.feature")
        self._check_structure(nodes)

    def _check_structure(self, nodes: int) -> None:
        if self.root.min() < 0 or self.root.max() >= nodes:
            raise PolicyError("tree.root must hold numbers of nodes")
        if self.feature.min() < -1 or self.feature.max() >= len(self.features):
            raise PolicyError("tree.feature must hold numbers of features, or -1 for a leaf")
        leaf = self.feature == -1
        index = np.arange(nodes)
        for name, child in (("left", self.left), ("right", self.right)):
            if child[leaf].any():
                raise PolicyError(f"tree.{name} must be 0 at a leaf")
            if not ((child > index) & (child < nodes))[~leaf].all():
                raise PolicyError(f"tree.{name} must be a later node at every split")
        if self.value[~leaf].any():
            raise PolicyError("tree.value must be 0 at every split")
        if self._height() > MAX_HEIGHT:
            raise PolicyError(f"a tree is more than {MAX_HEIGHT} nodes deep")

    def _height(self) -> int:
        """Steps of the longest walk; children come later, so one backward pass finds it."""
        heights = [0] * len(self.feature)
        left, right = self.left.tolist(), self.right.tolist()
        for node in reversed(np.flatnonzero(self.feature >= 0).tolist()):
            heights[node] = 1 + max(heights[left[node]], heights[right[node]])
        return max(heights)

    @property
    def parameters(self) -> int:
        """A threshold per split and a value per leaf."""
        return len(self.feature)

    def _tensors(self) -> dict[str, Array]:
        return {f"tree.{name}": getattr(self, name) for name in _ARRAYS}

    def _logits(self, inputs: F64) -> F64:
        """The sum over trees in order, from 0, in f64."""
        if len(inputs) >= _MANY_ROWS:
            return self._sorted_down(inputs)
        total = np.zeros(len(inputs))
        rows = min(len(inputs), 1024) or 1
        trees = max(1, _BLOCK // rows)
        with np.errstate(over="ignore", invalid="ignore"):
            for first in range(0, len(inputs), rows):
                part, sums = inputs[first : first + rows], total[first : first + rows]
                for start in range(0, len(self.root), trees):
                    for values in self._leaves(part, self.root[start : start + trees]):
                        sums += values  # one tree after the other: the order is part of the format
        return total

    def _sorted_down(self, inputs: F64) -> F64:
        """The same, where each node of a tree sorts its rows: faster if there are many rows."""
        columns = np.ascontiguousarray(inputs.T)
        every = np.arange(len(inputs))
        total, added = np.zeros(len(inputs)), np.empty(len(inputs))
        arrays = (self.feature, self.threshold, self.left, self.right, self.value)
        feature, threshold, left, right, value = (array.tolist() for array in arrays)
        for root in self.root.tolist():
            waiting = [(root, every)]
            while waiting:
                node, rows = waiting.pop()
                if feature[node] < 0:
                    added[rows] = value[node]
                elif len(rows):
                    goes_left = columns[feature[node]][rows] <= threshold[node]
                    waiting.append((left[node], rows[goes_left]))
                    waiting.append((right[node], rows[~goes_left]))
            total += added
        return total

    def _leaves(self, x: F64, root: I32) -> F64:
        """What each tree adds for each row, [trees, n]: all walks take one step at a time."""
        node = np.repeat(root, len(x))
        row = np.tile(np.arange(len(x)), len(root))
        walking = np.flatnonzero(self.feature[node] >= 0)
        while walking.size:
            here = node[walking]
            goes_left = x[row[walking], self.feature[here]] <= self.threshold[here]
            there = np.where(goes_left, self.left[here], self.right[here])
            node[walking] = there
            walking = walking[self.feature[there] >= 0]
        return self.value[node].reshape(len(root), len(x))


# Its raw score is the logarithm of the predicted mean, which is a gain to nobody who does not know.
_LOGARITHMIC: Final = frozenset({"poisson"})


class Booster(Protocol):
    """What is used of `lightgbm.Booster`; the library itself is not imported here."""

    def dump_model(self) -> dict[str, Any]:
        """The model as plain objects (up to its best iteration, as `predict` does)."""


def from_lightgbm(
    booster: Booster,
    features: Sequence[str],
    answers: str,
    offset: float = 0.0,
    provenance: Mapping[str, object] | None = None,
    *,
    problem: str,
    rule: str = DEFAULT_RULE,
    logarithmic: bool = False,
) -> TreesPolicy:
    """
    The policy whose logits are the booster's raw scores plus `offset`, bit for bit.

    `features` name the columns that the booster was trained on, in order; `problem` and `rule` are
    those of `Metadata`. With `logarithmic` the objective has to be one whose raw scores are the
    logarithm of what is predicted; without it, it must not be. Raises PolicyError
    for models that are not plain sums of numeric splits: other objectives, several classes, random
    forests, linear leaves, categorical splits, special treatment of missing values.
    LightGBM compares in double and goes left when `x <= threshold`, as the format does. It also
    reads inputs of at most 1e-35 in size as 0, which no count or cost is; the format does not.
    """
    model = booster.dump_model()
    _check_model(model, features, _LOGARITHMIC if logarithmic else _OBJECTIVES)
    trees = [tree["tree_structure"] for tree in model["tree_info"]]
    if offset or not trees:
        # A last tree of one leaf, so that the sum is rounded like `raw score + offset`.
        trees.append({"leaf_value": offset})
    if len(trees) > MAX_TREES:
        raise PolicyError(f"the LightGBM model has more than {MAX_TREES} trees")
    metadata = Metadata(
        "trees", tuple(features), answers, "none", provenance or {}, problem=problem, rule=rule
    )
    root, nodes = _number(trees)
    columns = list(zip(*nodes, strict=True))
    return TreesPolicy(
        metadata,
        root=np.array(root, dtype=np.int32),
        feature=np.array(columns[0], dtype=np.int32),
        threshold=np.array(columns[1], dtype=np.float64),
        left=np.array(columns[2], dtype=np.int32),
        right=np.array(columns[3], dtype=np.int32),
        value=np.array(columns[4], dtype=np.float64),
    )


def weighted_sum(parts: Sequence[tuple[TreesPolicy, float]], offset: float = 0.0) -> TreesPolicy:
    """
    The policy whose logit is the sum of each part's logit times its weight, plus `offset`.

    The first part's metadata is kept; all must read the same features. Raises PolicyError if
    they do not.
    """
    first = parts[0][0]
    if any(part.features != first.features for part, _ in parts):
        raise PolicyError("policies that read different features have no sum")
    constant = replace(
        first,
        root=np.zeros(1, dtype=np.int32),
        feature=np.full(1, -1, dtype=np.int32),
        threshold=np.zeros(1),
        left=np.zeros(1, dtype=np.int32),
        right=np.zeros(1, dtype=np.int32),
        value=np.array([offset]),
        range=None,
    )
    arrays: dict[str, list[Array]] = {name: [] for name in _ARRAYS}
    nodes = 0
    for part, weight in [*parts, (constant, 1.0)]:
        split = part.feature >= 0
        arrays["root"].append(part.root + nodes)
        arrays["feature"].append(part.feature)
        arrays["threshold"].append(part.threshold)
        arrays["left"].append(np.where(split, part.left + nodes, 0))
        arrays["right"].append(np.where(split, part.right + nodes, 0))
        arrays["value"].append(part.value * weight)
        nodes += len(part.feature)
    whole = {name: np.concatenate(each) for name, each in arrays.items()}
    return TreesPolicy(first.metadata, **whole)


def reading(policy: TreesPolicy, names: Sequence[str]) -> TreesPolicy:
    """
    The same policy as one that reads further features, whatever their values.

    Raises PolicyError if it reads one of them.
    """
    features = (*policy.features, *names)
    metadata = replace(policy.metadata, features=features)
    limits = policy.range
    if limits is not None:
        any_value = np.tile([-ANY_VALUE, ANY_VALUE], (len(names), 1))
        limits = np.concatenate([limits, any_value])
    return replace(policy, metadata=metadata, range=limits)


def _check_model(
    model: Mapping[str, Any], features: Sequence[str], objectives: frozenset[str]
) -> None:
    words = str(model.get("objective", "none")).split()
    objective = words[0] if words else "none"
    if objective not in objectives or "sqrt" in words:
        raise PolicyError(f"a LightGBM model with the objective {shown(objective)} has no logit")
    if model["num_class"] != 1 or model["num_tree_per_iteration"] != 1:
        raise PolicyError("a LightGBM model of several classes cannot become a policy")
    if model.get("average_output"):
        raise PolicyError("a LightGBM random forest averages its trees and cannot become a policy")
    names = model["feature_names"]
    if len(names) != len(features):
        raise PolicyError(f"the LightGBM model has {len(names)} features, not {len(features)}")
    unnamed = [f"Column_{index}" for index in range(len(names))]
    if names not in (unnamed, list(features)):
        raise PolicyError("the LightGBM model was trained on features of other names or order")


def _number(
    trees: Sequence[Mapping[str, Any]],
) -> tuple[list[int], list[tuple[int, float, int, int, float]]]:
    """
    Roots, and nodes as (feature, threshold, left, right, value), each tree breadth-first.

    Siblings are neighbours and the top of a tree is together: a walk touches few cache lines.
    """
    root: list[int] = []
    nodes: list[tuple[int, float, int, int, float]] = []
    for tree in trees:
        root.append(len(nodes))
        level = [tree]
        while level:
            below: list[Mapping[str, Any]] = []
            first_below = len(nodes) + len(level)
            for node in level:
                if "leaf_value" in node:
                    nodes.append((-1, 0.0, 0, 0, _leaf(node)))
                    continue
                left = first_below + len(below)
                nodes.append((int(node["split_feature"]), _threshold(node), left, left + 1, 0.0))
                below += (node["left_child"], node["right_child"])
            level = below
            if len(nodes) > MAX_NODES:
                raise PolicyError(f"the LightGBM model has more than {MAX_NODES} nodes")
    return root, nodes


def _leaf(node: Mapping[str, Any]) -> float:
    if "leaf_const" in node or "leaf_coeff" in node:
        raise PolicyError("a LightGBM model with linear leaves cannot become a policy")
    value = float(node["leaf_value"])
    if not math.isfinite(value):
        raise PolicyError("the LightGBM model holds a leaf that is not finite")
    return value


def _threshold(node: Mapping[str, Any]) -> float:
    if node["decision_type"] != "<=":
        raise PolicyError("a LightGBM model with categorical splits cannot become a policy")
    if node["missing_type"] != "None":
        raise PolicyError(
            f"the LightGBM model treats missing values as {shown(node['missing_type'])}: "
            "train it with use_missing=false and zero_as_missing=false"
        )
    return float(node["threshold"])
