"""A policy from trials: how many bytes does leaving the default save, and how sure is that?

Two models by gradient boosting (Ke et al., LightGBM, NIPS 2017). The first gives the gain g(x) of
leaving the default at a site; the second its spread s(x), how far g is off on a *project* that it
has not seen, learned from predictions across projects. The policy leaves the default where

    g(x) - caution * s(x) - least > 0

so it keeps to the default where projects disagree. A site with a feature outside the range of the
trials is the default's in any case (the range guard of ``docs/formats.md``).
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import lightgbm
import numpy as np
import numpy.typing as npt

from nestor.corpus.relink import LinkMode
from nestor.learn.trials import Trials
from nestor.policy.trees import TreesPolicy, from_lightgbm, weighted_sum

F64 = npt.NDArray[np.float64]

MISSING = -1.0
"""The value of a feature that is not known (docs/formats.md)."""

_PROGRAM = "program_"
"""How the names of features begin that need a summary of the program."""
_LINK_MODES: tuple[LinkMode, ...] = ("no-gc", "gc", "icf")
"""The link modes by the value of the feature ``program_link_gc``."""


@dataclass(frozen=True)
class GainSettings:
    """How the two models are fitted, and how cautious the policy is."""

    caution: float = 0.3
    """Spreads that the predicted gain must exceed."""
    least: float = 1.0
    """Bytes that must be left of it."""
    clip: float = 150.0
    """Bytes; a gain or loss beyond this counts as this."""
    rounds: int = 300
    """Trees of the model of gains."""
    spread_rounds: int = 100
    """Trees of the model of spreads."""
    leaves: int = 31
    learning_rate: float = 0.05
    least_rows: int = 40
    """Rows that a leaf needs."""
    folds: int = 5
    """Parts of the projects for predictions across projects."""


@dataclass(frozen=True)
class Rows:
    """Trials as the models see them."""

    x: F64
    """``[rows, features]``"""
    y: F64
    """Clipped gain, ``[rows]``."""
    weight: F64
    project: npt.NDArray[np.int64]


@dataclass(frozen=True)
class Fit:
    """The models, and what they predict for projects that they have not seen."""

    gain: lightgbm.Booster
    spread: lightgbm.Booster
    across: F64
    """Predicted gain of every row by models without the row's project."""


def rows(trials: Trials, features: Sequence[str], settings: GainSettings, seed: int) -> Rows:
    """Return every trial twice: as in a build with a summary of the program, and without.

    With a summary the policy is told the link mode, so the row's gain is that of one mode, drawn
    by ``seed``; without, what the summary says is missing and the gain is the mean over the modes.
    """
    count, modes = trials.gain.shape
    columns = [
        trials.default[:, None] if name == "inlining_default" else trials.columns([name])
        for name in features
    ]
    known = np.concatenate(columns, axis=1)
    unknown = known.copy()
    drawn = np.random.default_rng(seed).integers(0, modes, count)
    for index, name in enumerate(features):
        if name.startswith(_PROGRAM):
            unknown[:, index] = MISSING
        if name == "program_link_gc":
            known[:, index] = np.array([_LINK_MODES.index(mode) for mode in trials.modes])[drawn]
    gain = np.concatenate([trials.gain[np.arange(count), drawn], trials.gain.mean(axis=1)])
    return Rows(
        np.concatenate([known, unknown]),
        np.clip(gain, -settings.clip, settings.clip),
        np.tile(1 / np.sqrt(trials.sites), 2),
        np.tile(trials.projects(), 2),
    )


def fit(data: Rows, settings: GainSettings, seed: int) -> Fit:
    """Fit both models."""
    across = np.empty(len(data.y))
    for held_out in _folds(data.project, settings.folds, seed):
        model = _boost(data, data.y, ~held_out, settings, settings.rounds, seed)
        across[held_out] = np.asarray(model.predict(data.x[held_out]))
    every = np.ones(len(data.y), dtype=np.bool_)
    spread = _boost(data, np.abs(data.y - across), every, settings, settings.spread_rounds, seed)
    return Fit(_boost(data, data.y, every, settings, settings.rounds, seed), spread, across)


def calibrate(
    fitted: Fit, data: Rows, settings: GainSettings, cautions: Sequence[float]
) -> GainSettings:
    """Return ``settings`` with the smallest caution by which no unseen project loses.

    The gains are those of the trials, predicted by models without their project; the largest
    of ``cautions`` is taken if every one of them loses somewhere.
    """
    spread = np.asarray(fitted.spread.predict(data.x))
    for caution in sorted(cautions):
        leaves = fitted.across - caution * spread > settings.least
        saved = np.bincount(data.project, data.y * data.weight * leaves)
        if (saved >= 0).all():
            break
    return replace(settings, caution=caution)


def policy(
    fitted: Fit,
    data: Rows,
    features: Sequence[str],
    settings: GainSettings,
    provenance: Mapping[str, object],
) -> TreesPolicy:
    """Return the policy of ``fitted``: leave the default where the sure gain is positive."""
    gain = from_lightgbm(fitted.gain, features, "deviation", provenance=provenance)
    spread = from_lightgbm(fitted.spread, features, "deviation")
    summed = weighted_sum([(gain, 1.0), (spread, -settings.caution)], -settings.least)
    known = np.stack([data.x.min(axis=0), data.x.max(axis=0)], axis=1)
    return replace(summed, range=known)


def _folds(
    projects: npt.NDArray[np.int64], folds: int, seed: int
) -> Iterator[npt.NDArray[np.bool_]]:
    """Yield the rows of each part of the projects."""
    names = np.unique(projects)
    np.random.default_rng(seed).shuffle(names)
    for part in np.array_split(names, min(folds, len(names))):
        yield np.isin(projects, part)


def _boost(
    data: Rows,
    target: F64,
    use: npt.NDArray[np.bool_],
    settings: GainSettings,
    rounds: int,
    seed: int,
) -> lightgbm.Booster:
    options: dict[str, Any] = {
        "objective": "regression",
        "learning_rate": settings.learning_rate,
        "num_leaves": settings.leaves,
        "min_data_in_leaf": settings.least_rows,
        "feature_fraction": 0.7,
        "bagging_fraction": 0.7,
        "bagging_freq": 1,
        "lambda_l2": 5.0,
        "seed": seed,
        "deterministic": True,
        "force_row_wise": True,
        # The policy's format knows no missing values; they are numbers there (-1).
        "use_missing": False,
        "zero_as_missing": False,
        "verbosity": -1,
    }
    table = lightgbm.Dataset(data.x[use], target[use], weight=data.weight[use])
    return lightgbm.train(options, table, rounds)
