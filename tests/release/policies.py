"""Policies that LLVM's own advisor can ask, one of each kind, and rows to ask them about."""

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from nestor.policy.network import (
    LogNormalisation,
    Normalisation,
    QuantileNormalisation,
    QuantileScoreNormalisation,
    build,
    initial_layers,
)
from nestor.policy.spec import Metadata, Policy
from nestor.policy.trees import TreesPolicy

FEATURES: Final = ("cost_estimate", "callee_users", "nr_ctant_params", "caller_basic_block_count")
"""What both LLVM 19 and 22 compute."""

ROWS: Final = 1000


def network(normalisation: Normalisation, widths: Sequence[int], seed: int) -> Policy:
    """Return a network with weights and biases at random."""
    rng = np.random.default_rng(seed)
    layers = initial_layers((normalisation.width, *widths), rng)
    policy = build(FEATURES, "decision", normalisation, layers, problem="inlining-size")
    vector = policy.flatten_parameters() + rng.normal(0, 0.1, policy.parameters)
    return policy.with_parameters(vector.astype(np.float32))


def boundaries(count: int, seed: int) -> NDArray[np.float32]:
    """Return ascending boundaries, some of them equal, for each feature."""
    rng = np.random.default_rng(seed)
    return np.sort(rng.integers(-60, 400, (len(FEATURES), count)), axis=1).astype(np.float32)


def trees() -> TreesPolicy:
    """Return three trees, of which the second is a leaf."""
    return TreesPolicy(
        Metadata("trees", FEATURES, "decision", "none", problem="inlining-size"),
        root=np.array([0, 5, 6], dtype=np.int32),
        feature=np.array([0, 1, -1, -1, -1, -1, 3, -1, -1], dtype=np.int32),
        threshold=np.array([40.0, 2.5, 0, 0, 0, 0, 12.0, 0, 0]),
        left=np.array([1, 2, 0, 0, 0, 0, 7, 0, 0], dtype=np.int32),
        right=np.array([4, 3, 0, 0, 0, 0, 8, 0, 0], dtype=np.int32),
        value=np.array([0.0, 0.0, 0.1, 0.7, -0.7, 0.05, 0.0, -0.3, 0.3]),
    )


SCORES: Final = QuantileScoreNormalisation(
    boundaries(21, 3),
    np.array([10, 2.5, 0.3, 7], np.float32),
    np.array([0.01, 0.3, 1.7, 0.0625], np.float32),
)

POLICIES: Final[dict[str, Policy]] = {
    "log": network(
        LogNormalisation(np.array([3.0, 1.5, 0.25, 2.0]), np.array([0.4, 0.9, 1.1, 0.7])),
        (17, 5, 1),
        seed=1,
    ),
    "quantile": network(QuantileNormalisation(boundaries(21, 2)), (12, 2), seed=2),
    "z-score": network(SCORES, (9, 2), seed=3),
    "trees": trees(),
}


def rows(features: int, seed: int = 7) -> NDArray[np.int64]:
    """Return rows like a compiler's, small numbers and large ones of both signs, and zeros."""
    rng = np.random.default_rng(seed)
    shape = (ROWS, features)
    small = rng.integers(-5, 60, shape)
    large = np.exp(rng.random(shape) * 14) * np.where(rng.random(shape) < 0.25, -1, 1)
    x = np.where(rng.random(shape) < 0.6, small, large).astype(np.int64)
    x[0] = 0
    return x
