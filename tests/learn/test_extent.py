"""The range in which a policy may leave the default."""

import numpy as np
import pytest

from nestor.errors import NestorError
from nestor.learn.extent import observed_range, require_extent
from nestor.problem.registry import find_problem

EXTENT = ("size", "instructions")


def test_the_largest_are_left_out() -> None:
    x = np.stack([np.arange(100.0), np.arange(100.0)[::-1]], axis=1)
    seen = observed_range(x, ("size", "uses"), EXTENT, 0.05)
    assert seen.tolist() == [[0, np.quantile(np.arange(100), 0.95)], [0, 99]]
    assert ((x >= seen[:, 0]) & (x <= seen[:, 1])).all(axis=1).sum() == 95


def test_features_that_learners_read_say_the_extent() -> None:
    sets = find_problem("inlining-size").features
    for features in (sets.few, sets.unit, sets.program):
        require_extent(features, sets.extent, 0.05)


def test_without_an_extent_there_is_no_bound_and_that_is_said() -> None:
    with pytest.raises(NestorError, match="add size to --features"):
        require_extent(("cost",), EXTENT, 0.05)
    require_extent(("cost",), EXTENT, 0)
    require_extent(("cost",), (), 0.05)
