"""Augmented random search: step against the slope between mirrored perturbations.

ARS (Mania, Guy and Recht, NeurIPS 2018): of several directions, tried with both signs on the same
units, the best ones move the parameters by their differences, in units of the deviation of all
scores. Unlike :mod:`nestor.learn.algorithms.es` it accepts every step, so that a few units are
enough for one.

Most deviations from the default cost score, and the search moves away from them: it may end where
no candidate deviates any more and all of them score the same. Such a step would be none, and so
would all that follow. The centre then goes half-way back to its start, until there are differences
again.

A few units are a noisy judge, and the centre after the last step is one draw. The policy is the
mean of all centres, the last quarter weighing most (polynomial-decay averaging: Shamir and Zhang,
ICML 2013).
"""

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from nestor.errors import NestorError
from nestor.learn.blackbox.candidates import mean_change_pct, relative_changes
from nestor.learn.episodes import Episodes
from nestor.learn.gradient.descent import policy_of
from nestor.learn.learner import Metrics
from nestor.learn.setup import Ready, Setup
from nestor.learn.start import StartSettings, first_policy
from nestor.policy.network import MlpPolicy

F64 = npt.NDArray[np.float64]


@dataclass(frozen=True)
class RandomSearchSettings:
    """How the search steps."""

    steps: int = 1000
    """Updates, at most."""
    modules: int = 16
    """Units on which an update's candidates are compared."""
    directions: int = 8
    """Perturbations per update; each is tried with both signs."""
    best: int = 4
    """Directions that move the centre."""
    width: float = 0.5
    """Standard deviation of a perturbation."""
    learning_rate: float = 0.3
    """Length of a step."""
    recency: float = 3.0
    """How much the mean of the centres forgets of the first ones; 0 weighs every step the same."""
    start: StartSettings = field(default_factory=lambda: StartSettings(hidden=(), explore=0.03))
    """Where to start."""

    def __post_init__(self) -> None:
        if not 1 <= self.best <= self.directions:
            raise NestorError("Of the directions, at least one and at most all can be the best.")
        if self.recency < 0:
            raise NestorError("The recency must be at least 0.")


@dataclass(frozen=True)
class RandomSearchState:
    """Where the search stands."""

    step: int
    center: F64
    """``[parameters]``"""
    mean: F64
    """Of the centres so far, ``[parameters]``: the policy."""


@dataclass(frozen=True)
class RandomSearch:
    """The learner. See :class:`nestor.learn.learner.Learner`."""

    settings: RandomSearchSettings
    seed: int
    start: MlpPolicy
    episodes: Episodes

    @property
    def steps(self) -> int:
        """How many updates make a run."""
        return self.settings.steps

    def init(self) -> RandomSearchState:
        """Begin at the initial policy."""
        center = self.start.flatten_parameters().astype(np.float64)
        return RandomSearchState(0, center, center)

    def batch(self, state: RandomSearchState) -> F64:
        """Return the relative change of the next units' score under each candidate.

        ``[2 · directions]``: all with the positive sign, then all with the negative one.
        """
        units = self.episodes.drawn(self.seed, state.step, self.settings.modules)
        shifts = self._shifts(state)
        candidates = np.concatenate([state.center + shifts, state.center - shifts])
        policies = [policy_of(self.start, each) for each in candidates]
        return relative_changes(self.episodes, policies, units)

    def update(self, state: RandomSearchState, batch: F64) -> tuple[RandomSearchState, Metrics]:
        """Step against the slopes of the best directions."""
        settings = self.settings
        both = batch.reshape(2, settings.directions)
        usable = np.flatnonzero(np.isfinite(both).all(axis=0))
        order = usable[np.argsort(both[:, usable].min(axis=0), kind="stable")]
        best = order[: settings.best]
        slopes = both[0, best] - both[1, best]
        spread = float(both[:, best].std()) if len(best) else 0.0
        center = state.center
        if spread > 0:
            ascent = slopes @ self._shifts(state)[best] / settings.width
            center = center - settings.learning_rate / (len(best) * spread) * ascent
        elif len(best):
            center = (self.init().center + center) / 2
        step = state.step + 1
        newest = (1 + settings.recency) / (step + settings.recency)
        mean = state.mean + newest * (center - state.mean)
        return RandomSearchState(step, center, mean), {
            "relative_change_pct": mean_change_pct(batch),
            "best_change_pct": 100 * float(both[:, best].min()) if len(best) else 0.0,
            "failed": float(both.shape[1] - len(usable)),
        }

    def policy(self, state: RandomSearchState) -> MlpPolicy:
        """Return the mean of the centres."""
        return policy_of(self.start, state.mean)

    def _shifts(self, state: RandomSearchState) -> F64:
        """Return this step's perturbations, ``[directions, parameters]``."""
        generator = np.random.default_rng([self.seed, 10, state.step])
        shape = (self.settings.directions, len(state.center))
        return self.settings.width * generator.standard_normal(shape)


def set_up(settings: RandomSearchSettings, setup: Setup) -> Ready:
    """Make the learner ready to run."""
    episodes = setup.episodes(setup.problem.features.few)
    start = first_policy(setup, episodes.reference, settings.start)
    learner = RandomSearch(settings, setup.seed, start, episodes)
    return Ready(learner, "Random search", start.features)
