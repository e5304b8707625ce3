"""Evolution strategies: perturb the parameters, build programs, and move to what scored better.

A (µ/µ_w, λ) strategy with mirrored samples and elitism (Hansen, "The CMA Evolution Strategy: A
Tutorial", 2016, section 2, without the covariance; MLGO's paper used evolution strategies too).
Ranks instead of score differences, because the scores have a heavy tail: most perturbations do
little, and some make a unit explode.

The score is *guarded*: the mean relative change of the training programs' scores, with the changes
for the worse counted several times, and the project that gained most left out (the worst of the
jackknife's means). A policy that is better on average and worse on some program is not what a user
wants, and what helps one project alone seldom helps the next one.

The centre stays in a *trust region*: a policy may answer only a small part of the default's own
questions differently. On average a decision that leaves the default makes a program worse, also
under a policy whose training programs got better; what is bounded is the price on unseen code.

No compile is noisy, so a worse centre is never accepted. Every pair has a width of its own, drawn
log-uniformly: the score is made of plateaus (no decision changes) and cliffs, on which rules that
adapt one width to the rate of success shrink it to nothing.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from nestor.errors import NestorError
from nestor.learn.blackbox.comparison import on_training_programs
from nestor.learn.gradient.descent import policy_of
from nestor.learn.learner import Metrics
from nestor.learn.setup import Ready, Setup, as_network
from nestor.policy.network import MlpPolicy

F64 = npt.NDArray[np.float64]

_SHORTENINGS = 20
"""Of a perturbation, until it is given up: 0.7 ** 20 is below a thousandth."""


@dataclass(frozen=True)
class EvolutionSettings:
    """How the policy is improved."""

    steps: int = 40
    """Updates."""
    population: int = 12
    """Candidates per step, an even number: each perturbation is tried with both signs."""
    narrowest: float = 0.05
    """Least standard deviation of a perturbation."""
    widest: float = 1.0
    """Greatest standard deviation of a perturbation."""
    trust: float = 0.003
    """Greatest part of the default's questions in the training programs that a policy may answer
    differently."""
    growth_penalty: float = 4.0
    """How much more it counts when a program's score grows beyond stock."""


@dataclass(frozen=True)
class EvolutionState:
    """Where the strategy stands."""

    step: int
    center: F64
    """The parameters of the best policy so far, ``[parameters]``."""
    score: float
    """Its guarded score; 0 is stock."""
    changes: F64
    """Relative change of each training program's score under it, ``[programs]``."""


@dataclass(frozen=True)
class Samples:
    """What one step learns from: relative changes of scores, NaN where something failed."""

    candidates: F64
    """``[population, programs]``"""
    mean: F64
    """Of the weighted mean of the better candidates, ``[programs]``."""


Compare = Callable[[Sequence[MlpPolicy]], F64]
"""Return the relative change of each program's score under each policy against stock,
``[policies, programs]``; NaN where a compile or a link failed."""

Deviation = Callable[[MlpPolicy], float]
"""Return the part of the default's questions that a policy answers differently."""


@dataclass(frozen=True)
class EvolutionStrategies:
    """The learner. See :class:`nestor.learn.learner.Learner`."""

    settings: EvolutionSettings
    seed: int
    start: MlpPolicy
    projects: tuple[str, ...]
    """The project of each training program."""
    compare: Compare = field(repr=False)
    deviation: Deviation = field(repr=False)

    @property
    def steps(self) -> int:
        """How many updates make a run."""
        return self.settings.steps

    def init(self) -> EvolutionState:
        """Begin at the initial policy."""
        center = self.start.flatten_parameters().astype(np.float64)
        (changes,) = self._compare(center[None])
        return EvolutionState(0, center, float(self._scores(changes[None])[0]), changes)

    def batch(self, state: EvolutionState) -> Samples:
        """Build the programs under the candidates, then under the mean of the better ones."""
        candidates = self._candidates(state)
        changes = self._compare(candidates)
        mean = self._mean(state, candidates, self._scores(changes))
        return Samples(changes, self._compare(mean[None])[0])

    def update(self, state: EvolutionState, batch: Samples) -> tuple[EvolutionState, Metrics]:
        """Move to the best of centre, mean and candidates."""
        candidates = self._candidates(state)
        scores = self._scores(batch.candidates)
        (mean_score,) = self._scores(batch.mean[None])
        first = int(np.argmin(scores))
        offers = [
            (state.score, state.center, state.changes),
            (float(scores[first]), candidates[first], batch.candidates[first]),
            (float(mean_score), self._mean(state, candidates, scores), batch.mean),
        ]
        score, center, changes = min(offers, key=lambda offer: offer[0])
        return EvolutionState(state.step + 1, center, score, changes), {
            "guarded_score_pct": 100 * score,
            "mean_change_pct": 100 * float(changes.mean()),
            "worst_change_pct": 100 * float(changes.max()),
            "deviation_pct": 100 * self._deviation(center),
            "better_candidates": float((scores < state.score).mean()),
            "failed": float(np.isinf(scores).sum()),
        }

    def policy(self, state: EvolutionState) -> MlpPolicy:
        """Return the centre."""
        return self._at(state.center)

    def _candidates(self, state: EvolutionState) -> F64:
        """Return this step's candidates in the trust region, ``[population, parameters]``."""
        generator = np.random.default_rng([self.seed, state.step])
        pairs = self.settings.population // 2
        low, high = np.log(self.settings.narrowest), np.log(self.settings.widest)
        widths = np.exp(generator.uniform(low, high, size=(pairs, 1)))
        shifts: F64 = widths * generator.standard_normal((pairs, len(state.center)))
        return np.array([self._trusted(state.center, s) for s in (*shifts, *-shifts)])

    def _trusted(self, center: F64, shift: F64) -> F64:
        """Return ``center + shift``, the shift shortened until the policy is trusted."""
        for _ in range(_SHORTENINGS):
            if self._deviation(center + shift) <= self.settings.trust:
                return np.asarray(center + shift)
            shift = 0.7 * shift
        return center

    def _mean(self, state: EvolutionState, candidates: F64, scores: F64) -> F64:
        """Return the trusted mean of the better half, weighted by the logarithm of the rank."""
        chosen = np.argsort(scores, kind="stable")[: len(scores) // 2]
        weights = np.log(len(chosen) + 0.5) - np.log(np.arange(1, len(chosen) + 1))
        mean = weights @ candidates[chosen] / weights.sum()
        return self._trusted(state.center, mean - state.center)

    def _scores(self, changes: F64) -> F64:
        penalty = self.settings.growth_penalty
        return np.array([guarded_score(row, self.projects, penalty) for row in changes])

    def _compare(self, candidates: F64) -> F64:
        return self.compare([self._at(parameters) for parameters in candidates])

    def _deviation(self, parameters: F64) -> float:
        return self.deviation(self._at(parameters))

    def _at(self, parameters: F64) -> MlpPolicy:
        return policy_of(self.start, parameters)


def guarded_score(changes: F64, projects: Sequence[str], growth_penalty: float) -> float:
    """Return the worst of the means without one project; lower is better.

    :param changes: relative change of each program, NaN for one that failed, which nothing
        outweighs. Growth counts ``1 + growth_penalty`` times.
    :param projects: the project of each program.
    """
    if not np.isfinite(changes).all():
        return float("inf")
    weighed = changes + growth_penalty * np.maximum(changes, 0.0)
    names = np.asarray(projects)
    others = [weighed[names != name] for name in np.unique(names)]
    return float(max((rest.mean() for rest in others if rest.size), default=weighed.mean()))


def set_up(settings: EvolutionSettings, setup: Setup) -> Ready:
    """Make evolution strategies ready to run.

    :raises NestorError: if there is no policy to start from, or it does not decide by itself.
    """
    if setup.init is None:
        raise NestorError(
            "Evolution strategies need a policy to start from: train one with --learner bc, then"
            " pass it with --init."
        )
    start = as_network(setup.init)
    if start.metadata.answers != "decision":
        raise NestorError("What --init names deviates from a default; es needs a clone.")
    if setup.budget.cpu_minutes is not None:
        setup.reference(start.features)  # for the prices
    compare = on_training_programs(setup)
    projects = tuple(program.project for program in compare.programs)
    learner = EvolutionStrategies(settings, setup.seed, start, projects, compare, compare.deviation)
    return Ready(learner, "Evolving", start.features, lambda result: compare.report(result.policy))
