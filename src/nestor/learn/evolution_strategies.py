"""Evolution strategies: move the parameters towards perturbations that made programs smaller.

Antithetic evolution strategies after Salimans et al. (2017), as MLGO's paper used them, with one
change that makes them affordable: a pair is two compiles of one module, not of the corpus. A
module's score depends on its own decisions only, so a pair under a perturbation of its own is a
sample of the gradient of the sum; modules are drawn in proportion to their decisions, and a
drawn module counts by the inverse of its probability.

Exploring is cheap to do and dangerous to believe: a step is noisy, and a policy that is smaller
on average may be larger on some program. So every few steps the current policy is compiled
greedily and linked. The state keeps the one with the lowest *guarded score*: the mean change of
the training programs' linked bytes, plus a penalty for each byte that a program grew. A walk that
has strayed is taken back to it.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from nestor.learn.adam import Moments, adam
from nestor.learn.learner import Metrics
from nestor.policy.network import MlpPolicy
from nestor.policy.spec import Policy

F64 = npt.NDArray[np.float64]


@dataclass(frozen=True)
class EvolutionSettings:
    """How the policy is improved."""

    steps: int = 60
    """Updates."""
    sigma: float = 0.15
    """Standard deviation of the perturbation of each parameter."""
    learning_rate: float = 0.03
    """Adam's step size."""
    pairs: int = 24
    """Antithetic pairs of compiles per step."""
    clip: float = 0.01
    """A pair's difference counts at most this fraction of a program: a few perturbations make a
    module explode, and say little about where it would shrink."""
    check_every: int = 3
    """Steps between two greedy checks of the training programs."""
    patience: float = 0.002
    """A check that is worse than the best by this much sends the walk back to the best."""
    growth_penalty: float = 4.0
    """How much more a byte counts that makes a program larger than stock."""


@dataclass(frozen=True)
class EvolutionState:
    """The search's centre, Adam's moments and the best policy checked so far."""

    step: int
    parameters: F64
    moments: Moments
    best_parameters: F64
    best_score: float
    """Guarded score of the best; infinite before the first check."""


@dataclass(frozen=True)
class Perturbed:
    """One compile to be made: a module under perturbed parameters."""

    module: str
    parameters: F64


@dataclass(frozen=True)
class Checked:
    """What the greedy policy made of the training programs."""

    changes: F64
    """Relative change of each program's linked bytes, ``[programs]``; NaN where it failed."""


@dataclass(frozen=True)
class Samples:
    """What one step learns from."""

    differences: F64
    """Score at +sigma minus score at −sigma, ``[pairs]``; NaN where a compile failed."""
    checked: Checked | None
    """The greedy check, on the steps that make one."""


Compile = Callable[[Sequence[Perturbed]], Sequence[float]]
"""Return the score of each compile (a fraction of linked bytes, see ``rewards.linked_size``);
NaN for one that failed."""

Check = Callable[[Policy], Checked]


@dataclass(frozen=True)
class EvolutionStrategies:
    """The learner. See :class:`nestor.learn.learner.Learner`."""

    settings: EvolutionSettings
    seed: int
    start: MlpPolicy
    modules: tuple[str, ...]
    decisions: tuple[int, ...]
    """How many decisions the default heuristic takes in each module."""
    compile: Compile = field(repr=False)
    check: Check = field(repr=False)

    @property
    def steps(self) -> int:
        """How many updates make a run."""
        return self.settings.steps

    def init(self) -> EvolutionState:
        """Begin at the initial policy, which is also the best so far."""
        parameters = self.start.flatten_parameters().astype(np.float64)
        moments = Moments.zeros(len(parameters))
        return EvolutionState(0, parameters, moments, parameters, float("inf"))

    def batch(self, state: EvolutionState) -> Samples:
        """Compile the antithetic pairs of one step, and check when it is due."""
        chosen, shifts = self._draw(state)
        tasks = [
            Perturbed(self.modules[module], state.parameters + sign * shift)
            for module, shift in zip(chosen, shifts, strict=True)
            for sign in (1, -1)
        ]
        scores = np.asarray(self.compile(tasks), dtype=np.float64).reshape(-1, 2)
        due = state.step % self.settings.check_every == 0 or state.step + 1 == self.steps
        checked = self.check(self._at(state.parameters)) if due else None
        return Samples(scores[:, 0] - scores[:, 1], checked)

    def update(self, state: EvolutionState, batch: Samples) -> tuple[EvolutionState, Metrics]:
        """Step along the estimated gradient; remember the policy that was checked if it is best."""
        chosen, shifts = self._draw(state)
        valid = np.isfinite(batch.differences)
        clip = self.settings.clip
        weights = np.clip(np.where(valid, batch.differences, 0.0), -clip, clip)
        weights /= self._probabilities()[chosen] * len(chosen)
        gradient = weights @ shifts / (2 * self.settings.sigma**2)
        change, moments = adam(gradient, state.moments, state.step, self.settings.learning_rate)
        metrics = {
            "difference_pct": 100 * float(np.abs(np.nan_to_num(batch.differences)).mean()),
            "changed_pairs": float((weights != 0).mean()),
            "failed": float((~valid).sum()),
        }
        after = replace(
            state, step=state.step + 1, parameters=state.parameters + change, moments=moments
        )
        if batch.checked is not None:
            score = guarded_score(batch.checked.changes, self.settings.growth_penalty)
            worst = float(np.nanmax(batch.checked.changes))
            metrics |= {
                "guarded_score_pct": 100 * score,
                "mean_linked_change_pct": 100 * float(np.nanmean(batch.checked.changes)),
                "worst_linked_change_pct": 100 * worst,
            }
            if score < state.best_score:
                after = replace(after, best_parameters=state.parameters, best_score=score)
            elif score > state.best_score + self.settings.patience:
                still = Moments.zeros(len(state.parameters))
                after = replace(after, parameters=state.best_parameters, moments=still)
        return after, metrics

    def policy(self, state: EvolutionState) -> MlpPolicy:
        """Return the best policy that was checked."""
        return self._at(state.best_parameters)

    def _probabilities(self) -> F64:
        """Return how likely each module is drawn; one without decisions never is."""
        decisions = np.asarray(self.decisions, dtype=np.float64)
        return np.asarray(decisions / decisions.sum())

    def _draw(self, state: EvolutionState) -> tuple[npt.NDArray[np.intp], F64]:
        """Return the modules ``[pairs]`` and shifts ``[pairs, parameters]`` of this step."""
        generator = np.random.default_rng([self.seed, state.step])
        pairs = self.settings.pairs
        chosen = generator.choice(len(self.modules), size=pairs, p=self._probabilities())
        return chosen, self.settings.sigma * generator.standard_normal(
            (pairs, len(state.parameters))
        )

    def _at(self, parameters: F64) -> MlpPolicy:
        return self.start.with_parameters(parameters.astype(np.float32))


def guarded_score(changes: F64, growth_penalty: float) -> float:
    """Return the mean change, growth counted ``1 + growth_penalty`` times; lower is better.

    A program that failed counts as if it had doubled.
    """
    known = np.where(np.isfinite(changes), changes, 1.0)
    return float((known + growth_penalty * np.maximum(known, 0.0)).mean())
