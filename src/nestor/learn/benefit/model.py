"""A policy from profiles: how much of a run would an answer save, for what it costs of the code?

A profile says how often each question's code runs, so every question of a program is a row: its
features, what the run would save if it were answered by "yes" (the *gain*, part of what the run
executes) and what that costs (part of the program's code). The model predicts the mean of gain over
cost from features, by gradient boosting with Poisson's likelihood, the cost being the exposure
(McCullagh and Nelder, "Generalized Linear Models", 1989, chapter 6). Its raw score is the logarithm
of the mean. Filling code by gain over cost is Dantzig's rule for knapsacks ("Discrete-Variable
Extremum Problems", Operations Research 1957).

The policy deviates from the default where it says no and the prediction is above one limit, and
where it says yes and the prediction is below another one.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from nestor.policy.trees import TreesPolicy, from_lightgbm, weighted_sum

F64 = npt.NDArray[np.float64]

_EXPOSURE: Final = 1000.0
"""The weight of all code of a program."""


@dataclass(frozen=True)
class Rows:
    """Questions of programs."""

    x: F64
    """``[rows, features]``"""
    gain: F64
    """What "yes" saves, as part of what the program's run executes, ``[rows]``."""
    cost: F64
    """What it costs, as part of the program's code, ``[rows]``; positive."""


@dataclass(frozen=True)
class BoostSettings:
    """How the model is fitted."""

    rounds: int = 150
    """Trees."""
    leaves: int = 15
    learning_rate: float = 0.05
    least_rows: int = 100
    """Rows that a leaf needs."""
    most: float = 50.0
    """Gain over cost that counts at most."""


@dataclass(frozen=True)
class Limits:
    """Predicted gain over cost at which the policy leaves the default."""

    take: float
    """Above it "yes" where the default says no."""
    leave: float
    """Below it "no" where the default says yes."""


def fit(
    rows: Rows, features: Sequence[str], settings: BoostSettings, seed: int, *, problem: str
) -> TreesPolicy:
    """Return the trees whose logit is the logarithm of the predicted gain over cost."""
    import lightgbm  # slow to import

    options: dict[str, Any] = {
        "objective": "poisson",
        "learning_rate": settings.learning_rate,
        "num_leaves": settings.leaves,
        "min_data_in_leaf": settings.least_rows,
        "feature_fraction": 0.5,
        "bagging_fraction": 0.7,
        "bagging_freq": 1,
        "lambda_l2": 5.0,
        "seed": seed,
        "deterministic": True,
        "force_row_wise": True,
        "num_threads": 1,
        # A policy file has no missing values; they are numbers there (-1).
        "use_missing": False,
        "zero_as_missing": False,
        "verbosity": -1,
    }
    density = np.minimum(rows.gain / rows.cost, settings.most)
    table = lightgbm.Dataset(rows.x, density, weight=_EXPOSURE * rows.cost)
    booster = lightgbm.train(options, table, settings.rounds)
    return from_lightgbm(booster, features, "deviation", problem=problem)


def policy(density: TreesPolicy, default: str, limits: Limits) -> TreesPolicy:
    """Return the policy that leaves the default at ``limits``.

    :param density: what :func:`fit` returned; reads the feature ``default``.
    :param default: the feature that holds the default's answer.
    """
    column = density.features.index(default)
    own = _by_default(density, column)
    # Where the default says no: log density - log take; where it says yes: the opposite.
    least = _split(own.metadata.features, column, -np.log(limits.take), np.log(limits.leave), own)
    return weighted_sum([(own, 1.0), (least, 1.0)])


def _by_default(policy: TreesPolicy, column: int) -> TreesPolicy:
    """Return ``policy`` with the opposite logit where the feature ``column`` is more than 0.

    Each tree becomes the two branches of a split, the second one with the signs turned around.
    """
    trees, nodes = len(policy.root), len(policy.feature)
    split = policy.feature >= 0
    feature = np.concatenate([np.full(trees, column), policy.feature, policy.feature])
    first, second = policy.root + trees, policy.root + trees + nodes
    left = np.concatenate(
        [first, *(np.where(split, policy.left + at, 0) for at in (trees, trees + nodes))]
    )
    right = np.concatenate(
        [second, *(np.where(split, policy.right + at, 0) for at in (trees, trees + nodes))]
    )
    return replace(
        policy,
        root=np.arange(trees, dtype=np.int32),
        feature=feature.astype(np.int32),
        threshold=np.concatenate([np.zeros(trees), policy.threshold, policy.threshold]),
        left=left.astype(np.int32),
        right=right.astype(np.int32),
        value=np.concatenate([np.zeros(trees), policy.value, -policy.value]),
    )


def _split(
    features: Sequence[str], column: int, zero: float, more: float, like: TreesPolicy
) -> TreesPolicy:
    """Return a policy of one split: ``zero`` where a feature is at most 0, ``more`` elsewhere."""
    return replace(
        like,
        root=np.zeros(1, np.int32),
        feature=np.array([column, -1, -1], np.int32),
        threshold=np.zeros(3),
        left=np.array([1, 0, 0], np.int32),
        right=np.array([2, 0, 0], np.int32),
        value=np.array([0.0, zero, more]),
    )
