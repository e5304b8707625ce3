"""What REINFORCE and PPO have in common: batches on policy, their rewards, and what is kept.

Both make likelier what was rewarded; they differ in how they step.
"""

from dataclasses import dataclass, replace
from typing import Generic, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from nestor.learn.batch import Batch, chosen_rows
from nestor.learn.credit import CreditSettings, advantages, rewards
from nestor.learn.episodes import Episodes
from nestor.learn.gradient import novelty
from nestor.learn.gradient.descent import begin, policy_of
from nestor.learn.gradient.novelty import NoveltySettings, NoveltyState
from nestor.learn.gradient.optimiser import OptimiserState
from nestor.policy.network import MlpPolicy

F32 = npt.NDArray[np.float32]
F64 = npt.NDArray[np.float64]


class PolicyGradientSettings(Protocol):
    """What such a learner reads of its settings, which say what they mean."""

    @property
    def steps(self) -> int: ...  # noqa: D102

    @property
    def modules(self) -> int: ...  # noqa: D102

    @property
    def groups(self) -> bool: ...  # noqa: D102

    @property
    def credit(self) -> CreditSettings: ...  # noqa: D102

    @property
    def novelty(self) -> NoveltySettings: ...  # noqa: D102


Settings = TypeVar("Settings", bound=PolicyGradientSettings)


@dataclass(frozen=True)
class PolicyGradientState:
    """The policy's parameters, and what rewards are measured against."""

    step: int
    optimiser: OptimiserState
    averages: F64
    """Moving average of each unit's score, ``[units]``."""
    novelty: NoveltyState


@dataclass(frozen=True)
class Rewarded:
    """A batch with what came of its decisions."""

    inputs: F32
    """What the network reads, ``[rows, features]``."""
    advantage: F32
    """How much better than expected each decision was, ``[decisions]``; empty without any."""
    metrics: dict[str, float]
    """Numbers of the batch, by the name of their curve."""


@dataclass(frozen=True)
class PolicyGradient(Generic[Settings]):
    """A learner without its update. See :class:`nestor.learn.learner.Learner`."""

    settings: Settings
    seed: int
    start: MlpPolicy
    episodes: Episodes

    @property
    def steps(self) -> int:
        """How many updates make a run."""
        return self.settings.steps

    def init(self) -> PolicyGradientState:
        """Begin at the initial policy."""
        predictor = novelty.begin(self.settings.novelty, self.start.widths[0], self.seed)
        totals = self.episodes.reference.totals
        return PolicyGradientState(0, begin(self.start), totals, predictor)

    def batch(self, state: PolicyGradientState) -> Batch:
        """Compile the next units under the stochastic policy."""
        units = self.episodes.drawn(self.seed, state.step, self.settings.modules)
        return self.episodes.sampled(
            self.policy(state), units, self.seed, state.step, groups=self.settings.groups
        )

    def policy(self, state: PolicyGradientState) -> MlpPolicy:
        """Return the parameters as a policy."""
        return policy_of(self.start, state.optimiser.parameters)

    def rewarded(
        self, state: PolicyGradientState, batch: Batch
    ) -> tuple[PolicyGradientState, Rewarded]:
        """Return the state after ``batch`` but for the policy, and what the batch was worth."""
        settings, problem = self.settings, self.episodes.reference.problem
        inputs = self.start.normalise(batch.x)
        reward, averages = rewards(settings.credit, batch, state.averages, problem)
        acted_on = inputs[chosen_rows(self.start.rule, batch.question, batch.action)]
        predictor, bonus = novelty.update(settings.novelty, state.novelty, acted_on, self.seed)
        state = replace(state, step=state.step + 1, averages=averages, novelty=predictor)
        metrics = {"relative_change_pct": 100 * batch.relative_change}
        if len(batch) == 0:
            return state, Rewarded(inputs, np.zeros(0, np.float32), metrics)
        advantage = advantages(reward, settings.credit.scheme) + bonus
        metrics |= {
            "reward": float(reward.mean()),
            "acted_pct": batch.acted_pct,
            "decisions": float(len(batch)),
        }
        return state, Rewarded(inputs, advantage.astype(np.float32), metrics)
