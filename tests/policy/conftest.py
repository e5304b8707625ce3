"""One small policy of each kind, with everything that its kind can have."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from nestor.policy.network import (
    LogNormalisation,
    MlpPolicy,
    QuantileNormalisation,
    QuantileScoreNormalisation,
    build,
    initial_layers,
)
from nestor.policy.spec import Metadata, Policy
from nestor.policy.trees import TreesPolicy

FEATURES = ("cost_estimate", "callee_users", "inlining_default")


@pytest.fixture(scope="session")
def log_policy() -> MlpPolicy:
    rng = np.random.default_rng(1)
    normalisation = LogNormalisation(np.array([3.0, 1.5, 0.25]), np.array([0.4, 0.9, 0.0]))
    layers = initial_layers((3, 17, 5, 1), rng)
    provenance = {"seed": 1, "corpus": {"hash": "ab", "rates": [0.1, 1e-9]}, "name": "Nüstli"}
    policy = build(FEATURES, "deviation", normalisation, layers, provenance, problem="anything")
    # Biases too, or a missing one would go unnoticed.
    vector = policy.flatten_parameters() + rng.normal(0, 0.1, policy.parameters)
    return policy.with_parameters(vector.astype(np.float32))


@pytest.fixture(scope="session")
def quantile_policy() -> MlpPolicy:
    rng = np.random.default_rng(2)
    boundaries = np.sort(rng.integers(-50, 400, (3, 21)), axis=1).astype(np.float32)
    layers = initial_layers((9, 12, 2), rng)
    policy = build(
        FEATURES, "decision", QuantileNormalisation(boundaries), layers, problem="anything"
    )
    vector = policy.flatten_parameters() + rng.normal(0, 0.1, policy.parameters)
    return policy.with_parameters(vector.astype(np.float32))


@pytest.fixture(scope="session")
def score_policy(quantile_policy: MlpPolicy) -> MlpPolicy:
    rng = np.random.default_rng(3)
    quantiles = quantile_policy.normalisation
    assert isinstance(quantiles, QuantileNormalisation)
    mean, scale = np.array([3, -1.5, 0], np.float32), np.array([0.1, 2.5, 1], np.float32)
    normalisation = QuantileScoreNormalisation(quantiles.boundaries, mean, scale)
    layers = initial_layers((12, 7, 1), rng)
    return build(FEATURES, "decision", normalisation, layers, problem="anything")


@pytest.fixture(scope="session")
def trees_policy() -> TreesPolicy:
    """Two trees; the second shares a leaf with the first."""
    return TreesPolicy(
        Metadata("trees", FEATURES, "deviation", "none", problem="anything"),
        root=np.array([0, 5], dtype=np.int32),
        feature=np.array([0, 1, -1, -1, -1, 2, -1], dtype=np.int32),
        threshold=np.array([10.0, 2.5, 0.0, 0.0, 0.0, 0.5, 0.0]),
        left=np.array([1, 2, 0, 0, 0, 6, 0], dtype=np.int32),
        right=np.array([4, 3, 0, 0, 0, 6, 0], dtype=np.int32),
        value=np.array([0.0, 0.0, 0.1, 0.2, -0.7, 0.0, 0.3]),
    )


@pytest.fixture(scope="session")
def ranged_policy(log_policy: MlpPolicy) -> MlpPolicy:
    return replace(log_policy, range=np.array([[-10.0, 300.0], [0.0, 200.0], [-50.0, 400.0]]))


POLICIES = ["log_policy", "quantile_policy", "score_policy", "trees_policy", "ranged_policy"]


@pytest.fixture(scope="session", params=POLICIES)
def policy(request: pytest.FixtureRequest) -> Policy:
    found = request.getfixturevalue(request.param)
    assert isinstance(found, Policy)
    return found
