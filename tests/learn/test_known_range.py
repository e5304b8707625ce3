"""The range in which a policy may leave the default."""

import numpy as np

from nestor.learn.known_range import known_range


def test_the_largest_callees_are_unknown() -> None:
    x = np.stack([np.arange(100.0), np.arange(100.0)[::-1]], axis=1)
    known = known_range(x, ("callee_code_size", "callee_uses"), 0.05)
    assert known.tolist() == [[0, np.quantile(np.arange(100), 0.95)], [0, 99]]
    assert ((x >= known[:, 0]) & (x <= known[:, 1])).all(axis=1).sum() == 95
