from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from nestor.policy.linear import as_sum
from nestor.policy.network import Layer, squash
from nestor.problems.inlining_size.builtins import BUILTINS
from tests.problems.inlining_size.sums import linear


@pytest.mark.parametrize("outputs", [1, 2])
def test_a_linear_policy_is_the_sum_that_is_shown(outputs: int) -> None:
    policy = linear()
    if outputs == 2:
        (layer,) = policy.layers  # minus and plus a half: their difference is the logit
        halves = np.array([-0.5, 0.5], dtype=np.float32)
        both = Layer(halves[:, None] * layer.weight, halves * layer.bias)
        policy = replace(policy, layers=(both,))
    policy = replace(policy, range=None)
    shown = as_sum(policy)
    assert shown is not None
    x = np.random.default_rng(0).integers(0, 12, (100, len(policy.features))).astype(np.float64)
    factors = np.array([shown.factors[name] for name in policy.features])
    inside = np.abs(policy.normalise(x)).max(axis=1) < 8
    assert inside.sum() > 20
    logits = shown.constant + squash(x) @ factors
    np.testing.assert_allclose(policy.logits(x)[inside], logits[inside], atol=1e-4)


def test_no_other_policy_is_a_sum() -> None:
    for name in ("shipped", "shipped-lto", "distilled", "distilled-lto", "mlgo2020", "never"):
        policy = BUILTINS.resolve(name)
        assert policy is not None
        assert as_sum(policy) is None
