"""A policy from trials: how many bytes does leaving the default save, and how sure is that?

Two models of one kind (``learn.gain_trees``, ``learn.gain_network``). The first gives the gain
g(x) of leaving the default at a site; the second its spread s(x), how far g is off on a *project*
that it has not seen, learned from predictions across projects. The policy leaves the default where

    g(x) - caution * s(x) - least > 0

so it keeps to the default where projects disagree. A site with a feature outside the range of the
trials is the default's in any case (the range guard of ``docs/reference/formats.md``).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
import numpy.typing as npt

from nestor.corpus.relink import LinkMode
from nestor.learn.known_range import known_range
from nestor.learn.trials import Trials, TrialsError
from nestor.policy.spec import Policy

F64 = npt.NDArray[np.float64]

MISSING = -1.0
"""The value of a feature that is not known (docs/reference/formats.md)."""

_PROGRAM = "program_"
"""How the names of features begin that need a summary of the program."""
_LINK_MODES: tuple[LinkMode, ...] = ("no-gc", "gc", "icf")
"""The link modes by the value of the feature ``program_link_gc``."""


class Model(Protocol):
    """A fitted model of one number per site."""

    def predict(self, x: F64) -> F64:
        """Return what it says of ``x`` ``[rows, features]``, ``[rows]``."""

    def policy(self, features: Sequence[str]) -> Policy:
        """Return the deviation policy whose logit is what the model says."""


class Kind(Protocol):
    """A way to fit models, and to make one policy of several."""

    def fit(self, x: F64, y: F64, weight: F64, seed: int, *, rough: bool) -> Model:
        """Fit ``y`` ``[rows]``; ``rough`` where less detail will do."""

    def weighted_sum(self, parts: Sequence[tuple[Policy, float]], offset: float) -> Policy:
        """Return the policy of the summed logits."""


@dataclass(frozen=True)
class GainSettings:
    """How cautious the policy is, and how its models are fitted and judged."""

    caution: float = 0.4
    """Spreads that the predicted gain must exceed, where no validation programs choose it."""
    least: float = 1.0
    """Bytes that must be left of it."""
    clip: float = 60.0
    """Bytes; a gain or loss beyond this counts as this."""
    outliers: float = 0.05
    """Part of the trials with the largest callees. Callees larger than the rest are the default's:
    a mistake there costs far more than ``clip`` lets the models know."""
    folds: int = 5
    """Parts of the projects for predictions across projects."""
    repeats: int = 3
    """Partitions into such parts; how far off a model is, is the mean over them."""


@dataclass(frozen=True)
class Rows:
    """Trials as the models see them."""

    x: F64
    """``[rows, features]``"""
    y: F64
    """Clipped gain, ``[rows]``."""
    weight: F64
    part: F64
    """Gain as part of its program's linked bytes, so that a program's rows add up to what it would
    save if all were followed, ``[rows]``."""
    project: npt.NDArray[np.int64]

    def where(self, use: npt.NDArray[np.bool_]) -> "Rows":
        """Return the rows for which ``use`` holds."""
        return Rows(self.x[use], self.y[use], self.weight[use], self.part[use], self.project[use])


@dataclass(frozen=True)
class Fit:
    """The two models."""

    gain: Model
    spread: Model


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
    project = np.tile(trials.projects(), 2)
    searches = np.bincount(trials.projects_of_programs())
    linked = np.tile(trials.bytes[trials.program], 2)
    return Rows(
        np.concatenate([known, unknown]),
        np.clip(gain, -settings.clip, settings.clip),
        np.tile(1 / np.sqrt(trials.sites), 2),
        gain / (2 * linked * searches[project]),
        project,
    )


def predict_across(kind: Kind, data: Rows, settings: GainSettings, seed: int) -> F64:
    """Return every row's gain by models that have not seen its project, ``[repeats, rows]``.

    :raises TrialsError: if the trials are of one project only.
    """
    if len(np.unique(data.project)) < 2:
        raise TrialsError(
            "The trials are of one project, and what holds in others cannot be told from it: train"
            " on a corpus of several projects."
        )
    across = np.empty((settings.repeats, len(data.y)))
    for repeat, predicted in enumerate(across):
        for held_out in _folds(data.project, settings.folds, seed + repeat):
            use = ~held_out
            model = kind.fit(data.x[use], data.y[use], data.weight[use], seed + repeat, rough=False)
            predicted[held_out] = model.predict(data.x[held_out])
    return across


def fit(kind: Kind, data: Rows, across: F64, seed: int) -> Fit:
    """Fit both models; ``across`` says how far the first is off on projects it has not seen."""
    off = np.abs(data.y - across).mean(axis=0)
    return Fit(
        kind.fit(data.x, data.y, data.weight, seed, rough=False),
        kind.fit(data.x, off, data.weight, seed, rough=True),
    )


def policy(
    kind: Kind, fitted: Fit, data: Rows, features: Sequence[str], settings: GainSettings
) -> Policy:
    """Return the policy of ``fitted``: leave the default where the sure gain is positive."""
    parts = [
        (fitted.gain.policy(features), 1.0),
        (fitted.spread.policy(features), -settings.caution),
    ]
    summed = kind.weighted_sum(parts, -settings.least)
    return replace(summed, range=known_range(data.x, features, settings.outliers))


def _folds(
    projects: npt.NDArray[np.int64], folds: int, seed: int
) -> Iterator[npt.NDArray[np.bool_]]:
    """Yield the rows of each part of the projects."""
    names = np.unique(projects)
    np.random.default_rng(seed).shuffle(names)
    for part in np.array_split(names, min(folds, len(names))):
        yield np.isin(projects, part)
