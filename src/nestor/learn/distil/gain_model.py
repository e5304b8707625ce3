"""A policy from trials: how much does leaving the default save, and how sure is that?

Two models of one kind (``gain_trees``, ``gain_network``). The first predicts the gain g(x) of
leaving the default at a question; the second its spread s(x), how far g is off on a *project* that
it has not seen, learned from predictions across projects. The policy leaves the default where

    g(x) - caution * s(x) - least > 0

so it keeps to the default where projects disagree. A question with a feature outside the range of
the trials is the default's in any case (the range guard of ``docs/reference/formats.md``).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
import numpy.typing as npt

from nestor.learn.distil.trials import Trials, TrialsError
from nestor.learn.extent import observed_range
from nestor.policy.spec import Policy
from nestor.problem.problem import Problem

F64 = npt.NDArray[np.float64]

MISSING = -1.0
"""The value of a feature for which there is no summary (docs/reference/formats.md)."""


class Model(Protocol):
    """A fitted model of one number per question."""

    def predict(self, x: F64) -> F64:
        """Return its predictions for ``x`` ``[rows, features]``, ``[rows]``."""

    def policy(self, features: Sequence[str], problem: str) -> Policy:
        """Return the deviation policy whose logit is the prediction."""


class Fitter(Protocol):
    """A way to fit models."""

    def fit(self, x: F64, y: F64, weight: F64, seed: int, *, coarse: bool) -> Model:
        """Fit ``y`` ``[rows]``; ``coarse`` where less detail will do."""


class Kind(Fitter, Protocol):
    """A way to fit models, and to make one policy of several."""

    def nothing(self, features: Sequence[str], problem: str) -> Policy:
        """Return the deviation policy whose logit is 0."""

    def weighted_sum(self, parts: Sequence[tuple[Policy, float]], offset: float) -> Policy:
        """Return the policy of the summed logits."""


@dataclass(frozen=True)
class GainSettings:
    """How cautious the policy is, and how its models are fitted and judged."""

    caution: float = 0.4
    """Spreads that the predicted gain must exceed, where no validation programs choose it."""
    least: float = 1.0
    """Units of the score that must be left of it."""
    clip: float = 60.0
    """Units of the score; a gain or loss beyond this counts as this."""
    tail: float = 1.0
    """Part of the modes, those in which it gains least, whose mean is the gain of a question
    without a summary: 1 is the mean over all, 0 the worst alone."""
    outliers: float = 0.05
    """Part of the trials in which a mistake can cost most. What exceeds the rest is left to the
    default: a mistake there costs far more than ``clip`` lets the models see."""
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
    """Gain as part of its program's score, so that a program's rows add up to what it would save if
    all were followed, ``[rows]``."""
    project: npt.NDArray[np.int64]

    def where(self, use: npt.NDArray[np.bool_]) -> "Rows":
        """Return the rows for which ``use`` holds."""
        return Rows(self.x[use], self.y[use], self.weight[use], self.part[use], self.project[use])


@dataclass(frozen=True)
class Fit:
    """The two models."""

    gain: Model
    spread: Model


def rows(
    trials: Trials, features: Sequence[str], problem: Problem, settings: GainSettings, seed: int
) -> Rows:
    """Return every trial twice: as in a build with a summary of the program, and without.

    With a summary the policy sees the mode of the link, so the row's gain is that of one of the
    modes that a summary can name, drawn by ``seed``; without, what the summary says is missing and
    the gain is the mean over those modes in which it is least (``settings.tail``).
    """
    count, modes = trials.gain.shape
    sets = problem.features
    named = [i for i, mode in enumerate(trials.modes) if mode in sets.modes] or list(range(modes))
    columns = [
        trials.default[:, None] if name == problem.default_column else trials.columns([name])
        for name in features
    ]
    summarised = np.concatenate(columns, axis=1)
    alone = summarised.copy()
    drawn = np.array(named)[np.random.default_rng(seed).integers(0, len(named), count)]
    for index, name in enumerate(features):
        if name in sets.program and name not in sets.unit:
            alone[:, index] = MISSING
        if name == sets.mode:
            number = {i: sets.modes.index(trials.modes[i]) for i in named}
            summarised[:, index] = [number[i] for i in drawn.tolist()]
    least = np.sort(trials.gain, axis=1)[:, : max(1, round(settings.tail * modes))]
    gain = np.concatenate([trials.gain[np.arange(count), drawn], least.mean(axis=1)])
    project = np.tile(trials.projects(), 2)
    searches = np.bincount(trials.projects_of_programs())
    score = np.tile(trials.score[trials.program], 2)
    return Rows(
        np.concatenate([summarised, alone]),
        np.clip(gain, -settings.clip, settings.clip),
        np.tile(1 / np.sqrt(trials.sharing), 2),
        gain / (2 * score * searches[project]),
        project,
    )


def predict_across(kind: Fitter, data: Rows, settings: GainSettings, seed: int) -> F64:
    """Return every row's gain by models that have not seen its project, ``[repeats, rows]``.

    :raises TrialsError: if the trials are of one project only.
    """
    if len(np.unique(data.project)) < 2:
        raise TrialsError(
            "The trials are of one project, and what holds in others does not follow from it: train"
            " on a corpus of several projects."
        )
    across = np.empty((settings.repeats, len(data.y)))
    for repeat, predicted in enumerate(across):
        for held_out in parts_of_projects(data.project, settings.folds, seed + repeat):
            use = ~held_out
            model = kind.fit(
                data.x[use], data.y[use], data.weight[use], seed + repeat, coarse=False
            )
            predicted[held_out] = model.predict(data.x[held_out])
    return across


def fit(kind: Fitter, data: Rows, across: F64, seed: int) -> Fit:
    """Fit both models; ``across`` says how far the first is off on projects it has not seen."""
    off = np.abs(data.y - across).mean(axis=0)
    return Fit(
        kind.fit(data.x, data.y, data.weight, seed, coarse=False),
        kind.fit(data.x, off, data.weight, seed, coarse=True),
    )


def policy(
    kind: Kind,
    fitted: Fit,
    data: Rows,
    features: Sequence[str],
    problem: Problem,
    settings: GainSettings,
) -> Policy:
    """Return the policy of ``fitted``: leave the default where the sure gain is positive."""
    parts = [
        (fitted.gain.policy(features, problem.name), 1.0),
        (fitted.spread.policy(features, problem.name), -settings.caution),
    ]
    summed = kind.weighted_sum(parts, -settings.least)
    extent = problem.features.extent
    return replace(summed, range=observed_range(data.x, features, extent, settings.outliers))


def parts_of_projects(
    projects: npt.NDArray[np.int64], parts: int, seed: int
) -> Iterator[npt.NDArray[np.bool_]]:
    """Yield which rows are of each part of the projects, drawn by ``seed``, for cross-validation.

    :param projects: the number of each row's project ``[n]``.
    """
    names = np.unique(projects)
    np.random.default_rng(seed).shuffle(names)
    for part in np.array_split(names, min(parts, len(names))):
        yield np.isin(projects, part)
