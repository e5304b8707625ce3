"""A policy from profiles: how much of a run would an answer save, for what it costs of the code?

A profile says how often each question's code runs, so every question of a program is a row: its
features, what the run would save if it were answered by "yes" (the *gain*, part of what the run
executes) and what that costs (part of the program's code). The model predicts the mean of gain over
cost from features, by gradient boosting with Poisson's likelihood, the cost being the exposure
(McCullagh and Nelder, "Generalized Linear Models", 1989, chapter 6). Its raw score is the logarithm
of the mean. Filling code by gain over cost is Dantzig's rule for knapsacks ("Discrete-Variable
Extremum Problems", Operations Research 1957).

The policy says yes where the default says no and the prediction is above one limit, and no where
the default says yes and it is below another: what the second saves of the code pays for the first.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import numpy.typing as npt

from nestor.policy.boosting import Boosting, boost
from nestor.policy.branches import Split, one_tree, weighted_by_side
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


def fit(
    rows: Rows, features: Sequence[str], settings: BoostSettings, seed: int, *, problem: str
) -> TreesPolicy:
    """Return the trees whose logit is the logarithm of the predicted gain over cost."""
    density = np.minimum(rows.gain / rows.cost, settings.most)
    boosting = Boosting(
        settings.rounds,
        settings.leaves,
        settings.learning_rate,
        settings.least_rows,
        objective="poisson",
    )
    booster = boost(rows.x, density, _EXPOSURE * rows.cost, seed, boosting)
    return from_lightgbm(booster, features, "deviation", problem=problem, logarithmic=True)


@dataclass(frozen=True)
class Limits:
    """Of gain over cost: per cent of the run for a per cent of the code, up to a factor."""

    take: float
    """The policy says yes above it."""
    leave: float = 0.0
    """It says no below it; at 0 never."""


def policy(density: TreesPolicy, default: str, limits: Limits, seen: F64) -> TreesPolicy:
    """Return the policy that deviates from the default beyond the limits.

    Where it never says no it is not asked if the default says yes, which saves its features: the
    default's answer is the first one of its range.

    :param density: what :func:`fit` returned; reads the feature ``default``.
    :param default: the feature that holds the default's answer.
    :param seen: the range in which the policy may answer, ``[features, 2]``.
    """
    take = float(np.log(limits.take))
    if not limits.leave:
        within = seen.copy()
        within[density.features.index(default)] = 0.0
        return replace(weighted_sum([(density, 1.0)], -take), range=within)
    above = weighted_by_side(density, default, 0.0, 1.0, -1.0)
    limit = one_tree(density, Split(default, 0.0, -take, float(np.log(limits.leave))))
    return replace(weighted_sum([(above, 1.0), (limit, 1.0)]), range=seen)
