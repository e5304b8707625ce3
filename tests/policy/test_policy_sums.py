"""Weighted sums of policies: the sum's logits are the sum of the logits."""

from dataclasses import replace

import lightgbm
import numpy as np
import pytest

from nestor.policy import network, trees
from nestor.policy.network import LogNormalisation, MlpPolicy
from nestor.policy.spec import PolicyError
from nestor.policy.trees import TreesPolicy, from_lightgbm

NAMES = ("a", "b", "c")
RNG = np.random.default_rng(5)
X = RNG.integers(-20, 200, (500, 3)).astype(np.float64)


def forest(target: np.ndarray[tuple[int], np.dtype[np.float64]]) -> TreesPolicy:
    settings = {"objective": "regression", "num_leaves": 7, "verbose": -1, "num_threads": 1}
    settings |= {"use_missing": False}
    return from_lightgbm(
        lightgbm.train(settings, lightgbm.Dataset(X, target), 12),
        NAMES,
        "deviation",
        problem="anything",
    )


def net(hidden: tuple[int, ...], seed: int) -> MlpPolicy:
    normalisation = LogNormalisation(*network.fit_normalisation(X))
    layers = network.initial_layers((3, *hidden, 1), np.random.default_rng(seed))
    return network.build(NAMES, "deviation", normalisation, layers, problem="anything")


def test_forests() -> None:
    one, two = forest(X[:, 0] - X[:, 1]), forest(np.abs(X[:, 2]))
    whole = trees.weighted_sum([(one, 1.0), (two, -0.5)], -3.0)
    assert np.allclose(whole.logits(X), one.logits(X) - 0.5 * two.logits(X) - 3)
    assert whole.metadata == one.metadata
    assert len(whole.root) == len(one.root) + len(two.root) + 1


@pytest.mark.parametrize("hidden", [(), (5,), (6, 4)])
def test_networks(hidden: tuple[int, ...]) -> None:
    one, two = net(hidden, 0), net(hidden, 1)
    whole = network.weighted_sum([(one, 1.0), (two, -0.25)], 2.0)
    expected = one.logits(X) - 0.25 * two.logits(X) + 2
    assert np.allclose(whole.logits(X), expected, atol=1e-4)
    assert whole.widths[1:-1] == tuple(2 * width for width in hidden)


def test_what_has_no_sum() -> None:
    other = replace(net((), 0).metadata, features=("a", "b", "z"))
    with pytest.raises(PolicyError, match="different features"):
        network.weighted_sum([(net((), 0), 1.0), (replace(net((), 1), metadata=other), 1.0)])
    with pytest.raises(PolicyError, match="different depths"):
        network.weighted_sum([(net((4,), 0), 1.0), (net((), 1), 1.0)])
    one = forest(X[:, 0])
    renamed = replace(one, metadata=replace(one.metadata, features=("a", "b", "z")))
    with pytest.raises(PolicyError, match="different features"):
        trees.weighted_sum([(one, 1.0), (renamed, 1.0)])
