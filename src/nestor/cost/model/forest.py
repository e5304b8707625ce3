"""Trees from LightGBM in the form that the native side evaluates.

All forests of a model share one set of bins for each feature: a tree compares bin numbers, which
fit a byte, instead of floats. The bins are exactly those that the trees distinguish, so nothing is
lost by it.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from nestor.cost.contract import ModelError

F32 = NDArray[np.float32]


class NodeShift(IntEnum):
    """Where a node, 32 bits, holds its feature, the bin compared with, and its children."""

    FEATURE_SHIFT = 0
    BIN_SHIFT = 8
    LEFT_SHIFT = 16
    RIGHT_SHIFT = 24


@dataclass(frozen=True)
class Forest:
    """The trees of one quantity; child numbers are inside a tree, inner nodes before leaves."""

    nodes: NDArray[np.uint32]
    """Feature, bin and children at the bits of :class:`NodeShift`; a leaf leads to itself."""
    values: F32
    """Of leaves, 0 at inner nodes ``[nodes]``."""
    first: NDArray[np.int32]
    """Where each tree begins, and the number of nodes ``[trees + 1]``."""
    depth: NDArray[np.int32]
    """Of each tree ``[trees]``."""
    base: float


NO_TREES: Final = Forest(
    np.zeros(0, np.uint32), np.zeros(0, np.float32), np.zeros(1, np.int32), np.zeros(0, np.int32), 0
)


def part_of(nodes: NDArray[np.uint32], shift: NodeShift) -> NDArray[np.uint32]:
    """Return one of the four bytes of each node."""
    return (nodes >> np.uint32(shift)) & np.uint32(255)


def _node(feature: int, place: int, left: int, right: int) -> int:
    return (
        feature << NodeShift.FEATURE_SHIFT
        | place << NodeShift.BIN_SHIFT
        | left << NodeShift.LEFT_SHIFT
        | right << NodeShift.RIGHT_SHIFT
    )


def checked(forest: Forest, features: int) -> Forest:
    """Return ``forest`` if the native side can evaluate it safely.

    :raises ModelError: if a node points outside its tree or to a feature that is not there.
    """
    sizes = np.diff(forest.first)
    good = len(forest.first) == len(forest.depth) + 1 and len(forest.nodes) == len(forest.values)
    good = good and forest.first[0] == 0 and forest.first[-1] == len(forest.nodes)
    if good and len(sizes):
        good = bool((sizes > 0).all() and (forest.depth >= 0).all() and (forest.depth < 256).all())
    if good and len(sizes):
        size = np.repeat(sizes, sizes)
        left, right = (
            part_of(forest.nodes, NodeShift.LEFT_SHIFT),
            part_of(forest.nodes, NodeShift.RIGHT_SHIFT),
        )
        feature = part_of(forest.nodes, NodeShift.FEATURE_SHIFT)
        good = bool((np.maximum(left, right) < size).all() and (feature < features).all())
    if not good:
        raise ModelError("The model file holds trees that lead nowhere; train the model again.")
    return forest


def edges_of(dumps: Sequence[Mapping[str, Any]], features: int) -> tuple[F32, NDArray[np.int32]]:
    """Return the thresholds of dumped LightGBM models, sorted, and where each feature's begin.

    :raises ModelError: if one feature has more than 255, which ``max_bin=255`` rules out.
    """
    found: list[set[float]] = [set() for _ in range(features)]
    for dump in dumps:
        for tree in dump["tree_info"]:
            for node in _inner(tree["tree_structure"]):
                found[node["split_feature"]].add(_float32_below(node["threshold"]))
    if max(map(len, found), default=0) > 255:
        raise ModelError("The trees use more than 255 thresholds of a feature; lower max_bin.")
    starts = np.cumsum([0, *map(len, found)]).astype(np.int32)
    return np.array([e for s in found for e in sorted(s)], dtype=np.float32), starts


def forest_of(dump: Mapping[str, Any], edges: F32, starts: NDArray[np.int32]) -> Forest:
    """Return the trees of a dumped LightGBM model over the bins of :func:`edges_of`."""
    nodes: list[int] = []
    values: list[float] = []
    first = [0]
    depth = []
    for tree in dump["tree_info"]:
        root = tree["tree_structure"]
        inner = list(_inner(root))
        leaves = list(_leaves(root))
        number = {id(node): i for i, node in enumerate(inner + leaves)}
        for node in inner:
            feature = node["split_feature"]
            mine = edges[starts[feature] : starts[feature + 1]]
            place = int(np.searchsorted(mine, np.float32(_float32_below(node["threshold"]))))
            left, right = number[id(node["left_child"])], number[id(node["right_child"])]
            nodes.append(_node(feature, place, left, right))
            values.append(0.0)
        for leaf in leaves:
            own = number[id(leaf)]
            nodes.append(_node(0, 0, own, own))
            values.append(leaf["leaf_value"])
        first.append(len(nodes))
        depth.append(_depth(root))
    return Forest(
        nodes=np.array(nodes, dtype=np.uint32),
        values=np.array(values, dtype=np.float16).astype(np.float32),
        first=np.array(first, dtype=np.int32),
        depth=np.array(depth, dtype=np.int32),
        base=0.0,
    )


def _float32_below(threshold: float) -> float:
    """Return the greatest float32 that is not above: features are float32, so nothing changes."""
    value = np.float32(threshold)
    return float(value if float(value) <= threshold else np.nextafter(value, np.float32(-np.inf)))


def _inner(node: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    if "split_feature" in node:
        yield node
        yield from _inner(node["left_child"])
        yield from _inner(node["right_child"])


def _leaves(node: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    if "split_feature" not in node:
        yield node
    else:
        yield from _leaves(node["left_child"])
        yield from _leaves(node["right_child"])


def _depth(node: Mapping[str, Any]) -> int:
    if "split_feature" not in node:
        return 0
    return 1 + max(_depth(node["left_child"]), _depth(node["right_child"]))
