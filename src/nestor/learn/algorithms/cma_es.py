"""CMA-ES: evolution strategies that learn which directions go together (Hansen, 2016).

The candidates of a generation are compared on a few units, drawn anew for each; where units have
no score of their own, on a few whole programs.

The algorithm is that of pycma. Its object cannot be kept in a checkpoint without pickle, and need
not be: it is a function of the seed and of the scores of all candidates so far, which are the
state. It is kept in memory from one step to the next, and computed anew from the scores when a run
is resumed.

Most deviations from the default cost score, and a distribution moves away from them: it may end
where nothing deviates, all candidates are stock's, and no score differs. When several generations
in a row have no candidate that is clearly better than stock, the search begins again at its start
with new draws (restarts on a flat fitness: Auger and Hansen, CEC 2005).
"""

import warnings
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from nestor.errors import NestorError
from nestor.learn.blackbox.candidates import Judge, by_units, mean_change_pct
from nestor.learn.blackbox.comparison import by_programs, on_training_programs
from nestor.learn.gradient.descent import policy_of
from nestor.learn.learner import Metrics
from nestor.learn.setup import Ready, Setup
from nestor.learn.start import StartSettings, first_policy
from nestor.policy.network import MlpPolicy

F64 = npt.NDArray[np.float64]

_FAILED = 1.0
"""The relative change of a candidate of which a compile failed: twice the score of stock."""

_BETTER = 2e-4
"""By how much relative to stock a candidate must be better to count: among deviations that cost,
there is nearly always one decision that saves a few bytes."""


@dataclass(frozen=True)
class CmaSettings:
    """How the distribution begins and how it is sampled."""

    steps: int = 1000
    """Updates, at most."""
    modules: int = 16
    """Units on which an update's candidates are compared; programs, where only those have a
    score."""
    population: int = 12
    """Candidates per update."""
    width: float = 0.7
    """Standard deviation of the first candidates."""
    patience: int = 5
    """Updates in a row without a candidate better than stock that make the search restart."""
    start: StartSettings = field(default_factory=lambda: StartSettings(hidden=(), explore=0.03))
    """Where to start."""

    def __post_init__(self) -> None:
        if self.population < 4:
            raise NestorError("CMA-ES needs a population of at least 4.")
        if self.patience < 1:
            raise NestorError("CMA-ES needs a patience of at least 1.")


@dataclass(frozen=True)
class CmaState:
    """All scores so far: the search follows from them."""

    step: int
    scores: F64
    """Relative changes of all candidates, ``[steps, population]``; lower is better."""


class Search:
    """pycma's object after a number of generations, and its candidates for the next one."""

    def __init__(self, settings: CmaSettings, seed: int, start: F64):
        self._settings = settings
        self._start = start
        self._generator = np.random.default_rng([seed, 11])
        self._scores = np.empty((0, settings.population))
        self._strategy = self._begin()
        self._candidates: list[F64] | None = None
        self._without_improvement = 0
        """Generations in a row."""

    def stands_at(self, scores: F64) -> bool:
        """Return whether these are the scores of the generations so far."""
        return np.array_equal(self._scores, scores)

    def candidates(self) -> list[F64]:
        """Return the candidates of the next generation, ``[population]`` of ``[parameters]``."""
        if self._candidates is None:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # about scores that are all equal
                self._candidates = self._strategy.ask()
        return self._candidates

    def advance(self, scores: F64) -> None:
        """Go on to the next generation with the candidates' scores ``[population]``."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about scores that are all equal
            self._strategy.tell(self.candidates(), list(scores))
        self._candidates = None
        self._scores = np.concatenate([self._scores, scores[None]])
        better = scores.min() < -_BETTER
        self._without_improvement = 0 if better else self._without_improvement + 1
        if self._without_improvement == self._settings.patience:
            self._strategy, self._without_improvement = self._begin(), 0

    @property
    def mean(self) -> F64:
        """The distribution's mean, ``[parameters]``."""
        return np.asarray(self._strategy.mean)

    @property
    def width(self) -> float:
        """The distribution's overall standard deviation."""
        return float(self._strategy.sigma)

    def _begin(self) -> Any:
        """Return pycma's object as it begins, with the generator's next draws."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that it cannot plot
            import cma
        generator = self._generator
        return cma.CMAEvolutionStrategy(
            self._start,
            self._settings.width,
            {
                "popsize": self._settings.population,
                "seed": np.nan,  # leaves NumPy's global state alone
                "randn": lambda *shape: generator.standard_normal(shape),
                "verbose": -9,
                "verb_log": 0,
            },
        )


@dataclass(frozen=True)
class CmaEs:
    """The learner. See :class:`nestor.learn.learner.Learner`."""

    settings: CmaSettings
    seed: int
    start: MlpPolicy
    judge: Judge = field(repr=False)
    _searches: list[Search] = field(default_factory=list, init=False, repr=False, compare=False)
    """The search of the last state in use: it saves time and decides nothing."""

    @property
    def steps(self) -> int:
        """How many updates make a run."""
        return self.settings.steps

    def init(self) -> CmaState:
        """Begin around the initial policy."""
        return CmaState(0, np.empty((0, self.settings.population)))

    def batch(self, state: CmaState) -> F64:
        """Return the relative change of the score under each candidate, on what is drawn next."""
        candidates = self.search(state.scores).candidates()
        return self.judge([policy_of(self.start, each) for each in candidates], state.step)

    def update(self, state: CmaState, batch: F64) -> tuple[CmaState, Metrics]:
        """Go on to the next generation: pycma moves the mean, the width and the covariance."""
        scores = np.where(np.isfinite(batch), batch, _FAILED)
        after = CmaState(state.step + 1, np.concatenate([state.scores, scores[None]]))
        return after, {
            "relative_change_pct": mean_change_pct(batch),
            "best_change_pct": 100 * float(scores.min()),
            "width": self.search(after.scores).width,
            "failed": float((~np.isfinite(batch)).sum()),
        }

    def policy(self, state: CmaState) -> MlpPolicy:
        """Return the distribution's mean."""
        return policy_of(self.start, self.search(state.scores).mean)

    def search(self, scores: F64) -> Search:
        """Return the search after generations with these scores, ``[steps, population]``."""
        kept = self._searches.pop() if self._searches else None
        if kept is None or not kept.stands_at(scores):
            if kept is None or not kept.stands_at(scores[:-1]):
                start = self.start.flatten_parameters().astype(np.float64)
                kept, done = Search(self.settings, self.seed, start), 0
            else:
                done = len(scores) - 1
            for generation in scores[done:]:
                kept.advance(generation)
        self._searches.append(kept)
        return kept


def set_up(settings: CmaSettings, setup: Setup) -> Ready:
    """Make the learner ready to run."""
    few, seed, count = setup.problem.features.few, setup.seed, settings.modules
    if setup.problem.scores_units:
        episodes = setup.episodes(few)
        start = first_policy(setup, episodes.reference, settings.start)
        learner = CmaEs(settings, seed, start, by_units(episodes, seed, count))
        return Ready(learner, "CMA-ES", start.features)
    compare = on_training_programs(setup)
    start = first_policy(setup, compare.questions(setup.read(few)), settings.start)
    learner = CmaEs(settings, seed, start, by_programs(compare, seed, count))
    return Ready(learner, "CMA-ES", start.features, lambda done: compare.report(done.policy))
