"""The range in which a policy may leave the default."""

import numpy as np
import pytest

from nestor.errors import NestorError
from nestor.learn.features import CHEAP_FEATURES, MODULE_FEATURES
from nestor.learn.known_range import known_range, require_size


def test_the_largest_callees_are_unknown() -> None:
    x = np.stack([np.arange(100.0), np.arange(100.0)[::-1]], axis=1)
    known = known_range(x, ("callee_code_size", "callee_uses"), 0.05)
    assert known.tolist() == [[0, np.quantile(np.arange(100), 0.95)], [0, 99]]
    assert ((x >= known[:, 0]) & (x <= known[:, 1])).all(axis=1).sum() == 95


@pytest.mark.parametrize("features", [CHEAP_FEATURES, MODULE_FEATURES])
def test_learners_that_deviate_know_how_large_a_callee_is(features: tuple[str, ...]) -> None:
    require_size(features, 0.05)


def test_without_a_size_there_is_no_bound_and_that_is_said() -> None:
    with pytest.raises(NestorError, match="callee_code_size"):
        require_size(("cost_estimate",), 0.05)
    require_size(("cost_estimate",), 0)
