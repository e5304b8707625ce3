"""CMA-ES: evolution strategies that learn which directions go together (Hansen, 2016).

The algorithm is that of pycma. Its object cannot be kept in a checkpoint without pickle, and need
not be: it is a function of the seed and of the scores that it was told, which are the state. Each
step asks the same questions again, gives the known answers, and goes on; that takes milliseconds.

Most deviations cost bytes, and a distribution flees from them: it may end where nothing deviates,
all candidates are stock's, and nothing shows the way back. When several generations in a row have
no candidate that is smaller than stock by more than a trace, the search begins again at its start
with new draws (restarts on a flat fitness: Auger and Hansen, CEC 2005).
"""

import warnings
from dataclasses import dataclass, field
from typing import Any

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

_FAILED = 1.0
"""The score of a candidate of which a compile failed: twice the size."""

_TRACE = 2e-4
"""Relative change of the bytes that gives no hope: at the edge there is always some decision."""


@dataclass(frozen=True)
class CmaSettings:
    """How the distribution begins and how it is sampled."""

    steps: int = 1000
    """Updates, at most."""
    modules: int = 16
    """Modules on which an update's candidates are compared."""
    population: int = 12
    """Candidates per update."""
    width: float = 0.7
    """Standard deviation of the first candidates."""
    patience: int = 5
    """Updates in a row without a candidate smaller than stock that make the search restart."""
    start: StartSettings = field(default_factory=lambda: StartSettings(hidden=(), explore=0.03))
    """Where to start."""

    def __post_init__(self) -> None:
        if self.population < 4:
            raise NestorError("CMA-ES needs a population of at least 4.")
        if self.patience < 1:
            raise NestorError("CMA-ES needs a patience of at least 1.")


@dataclass(frozen=True)
class CmaState:
    """What pycma was told."""

    step: int
    told: F64
    """Scores of all candidates, ``[steps, population]``; lower is better."""


@dataclass(frozen=True)
class CmaEs(BlackBox[CmaSettings, CmaState]):
    """The learner. See :class:`nestor.learn.learner.Learner`."""

    def init(self) -> CmaState:
        """Begin around the initial policy."""
        return CmaState(0, np.zeros((0, self.settings.population)))

    def update(self, state: CmaState, batch: F64) -> tuple[CmaState, Metrics]:
        """Remember the scores."""
        scores = np.where(np.isfinite(batch), batch, _FAILED)
        after = CmaState(state.step + 1, np.concatenate([state.told, scores[None]]))
        return after, {
            "relative_change_pct": mean_change_pct(batch),
            "best_change_pct": 100 * float(scores.min()),
            "width": float(self._replayed(after).sigma),
            "failed": float((~np.isfinite(batch)).sum()),
        }

    def policy(self, state: CmaState) -> MlpPolicy:
        """Return the distribution's mean."""
        return self._at(np.asarray(self._replayed(state).mean))

    def _candidates(self, state: CmaState) -> F64:
        return np.array(self._replayed(state).ask())

    def _replayed(self, state: CmaState) -> Any:
        """Return pycma's object after it has been told what ``state`` holds."""
        generator = np.random.default_rng([self.seed, 11])
        strategy, barren = self._begin(generator), 0
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about scores that are all equal
            for scores in state.told:
                strategy.tell(strategy.ask(), list(scores))
                barren = 0 if scores.min() < -_TRACE else barren + 1
                if barren == self.settings.patience:
                    strategy, barren = self._begin(generator), 0
        return strategy

    def _begin(self, generator: np.random.Generator) -> Any:
        """Return pycma's object as it begins, drawing what ``generator`` has next."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that it cannot plot
            import cma
        return cma.CMAEvolutionStrategy(
            self.start.flatten_parameters().astype(np.float64),
            self.settings.width,
            {
                "popsize": self.settings.population,
                "seed": np.nan,  # leaves NumPy's global state alone
                "randn": lambda *shape: generator.standard_normal(shape),
                "verbose": -9,
                "verb_log": 0,
            },
        )


def set_up(settings: CmaSettings, setup: Setup) -> Ready:
    """Make the learner ready to run."""
    episodes = setup.episodes(CHEAP_FEATURES)
    start = setup.start(settings.start, episodes)
    return Ready(CmaEs(settings, setup.seed, start, episodes), "CMA-ES", start.features)
