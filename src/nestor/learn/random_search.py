"""Augmented random search: walk against the slope between mirrored perturbations.

ARS (Mania, Guy and Recht, NeurIPS 2018): of several directions, tried with both signs on the same
modules, the best ones move the parameters by their differences, in units of the deviation of all
scores. Unlike :mod:`nestor.learn.evolution_strategies` the walk accepts every step, so that a few
modules are enough for one.

Most deviations cost bytes, and the walk flees from them: it may end where no candidate deviates any
more and all of them score the same. Such a step would be none, and so would all that follow. The
walk then goes half-way back to its start, until there are differences again.

A few modules are a noisy judge, and where the walk happens to end is one draw. The policy is the
mean of where it has been, the last quarter weighing most (polynomial-decay averaging: Shamir and
Zhang, ICML 2013).
"""

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from nestor.errors import NestorError
from nestor.learn.black_box import BlackBox, mean_change_pct
from nestor.learn.features import CHEAP_FEATURES
from nestor.learn.learner import Metrics
from nestor.learn.setup import Ready, Setup
from nestor.learn.start import StartSettings
from nestor.policy.network import MlpPolicy

F64 = npt.NDArray[np.float64]


@dataclass(frozen=True)
class RandomSearchSettings:
    """How the walk goes."""

    steps: int = 1000
    """Updates, at most."""
    modules: int = 16
    """Modules on which an update's candidates are compared."""
    directions: int = 8
    """Perturbations per update; each is tried with both signs."""
    best: int = 4
    """Directions that move the walk."""
    width: float = 0.5
    """Standard deviation of a perturbation."""
    learning_rate: float = 0.3
    """Length of a step."""
    recency: float = 3.0
    """How much the mean of the walk forgets of its beginning; 0 weighs every step the same."""
    start: StartSettings = field(default_factory=lambda: StartSettings(hidden=(), explore=0.03))
    """Where to start."""

    def __post_init__(self) -> None:
        if not 1 <= self.best <= self.directions:
            raise NestorError("Of the directions, at least one and at most all can be the best.")
        if self.recency < 0:
            raise NestorError("The recency must be at least 0.")


@dataclass(frozen=True)
class RandomSearchState:
    """Where the walk stands."""

    step: int
    center: F64
    """``[parameters]``."""
    mean: F64
    """Of the centres so far, ``[parameters]``: the policy."""


@dataclass(frozen=True)
class RandomSearch(BlackBox[RandomSearchSettings, RandomSearchState]):
    """The learner. See :class:`nestor.learn.learner.Learner`."""

    def init(self) -> RandomSearchState:
        """Begin at the initial policy."""
        center = self.start.flatten_parameters().astype(np.float64)
        return RandomSearchState(0, center, center)

    def update(self, state: RandomSearchState, batch: F64) -> tuple[RandomSearchState, Metrics]:
        """Step against the slopes of the best directions."""
        both = batch.reshape(2, self.settings.directions)
        usable = np.flatnonzero(np.isfinite(both).all(axis=0))
        order = usable[np.argsort(both[:, usable].min(axis=0), kind="stable")]
        best = order[: self.settings.best]
        slopes = both[0, best] - both[1, best]
        spread = float(both[:, best].std()) if len(best) else 0.0
        center = state.center
        if spread > 0:
            ascent = slopes @ self._shifts(state)[best] / self.settings.width
            center = center - self.settings.learning_rate / (len(best) * spread) * ascent
        elif len(best):
            center = (self.init().center + center) / 2
        step = state.step + 1
        newest = (1 + self.settings.recency) / (step + self.settings.recency)
        mean = state.mean + newest * (center - state.mean)
        return RandomSearchState(step, center, mean), {
            "relative_change_pct": mean_change_pct(batch),
            "best_change_pct": 100 * float(both[:, best].min()) if len(best) else 0.0,
            "failed": float(both.shape[1] - len(usable)),
        }

    def policy(self, state: RandomSearchState) -> MlpPolicy:
        """Return the mean of the walk."""
        return self._at(state.mean)

    def _candidates(self, state: RandomSearchState) -> F64:
        shifts = self._shifts(state)
        return np.concatenate([state.center + shifts, state.center - shifts])

    def _shifts(self, state: RandomSearchState) -> F64:
        """Return this step's perturbations, ``[directions, parameters]``."""
        generator = np.random.default_rng([self.seed, 10, state.step])
        shape = (self.settings.directions, len(state.center))
        return self.settings.width * generator.standard_normal(shape)


def set_up(settings: RandomSearchSettings, setup: Setup) -> Ready:
    """Make the learner ready to run."""
    episodes = setup.episodes(CHEAP_FEATURES)
    start = setup.start(settings.start, episodes)
    learner = RandomSearch(settings, setup.seed, start, episodes)
    return Ready(learner, "Random search", start.features)
