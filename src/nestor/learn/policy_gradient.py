"""What learners by policy gradient share: where they stand, what they sample, what that is paid."""

from dataclasses import dataclass, replace
from typing import Generic, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from nestor.learn import random_network_distillation as novelty
from nestor.learn.batch import Batch
from nestor.learn.credit import CreditSettings, advantages, pay
from nestor.learn.episodes import Episodes, draw
from nestor.learn.gradient import Walk
from nestor.learn.learner import Metrics
from nestor.learn.random_network_distillation import NoveltySettings, NoveltyState
from nestor.policy.network import MlpPolicy

F32 = npt.NDArray[np.float32]
F64 = npt.NDArray[np.float64]


class Settings(Protocol):
    """What the settings of such a learner have in common."""

    @property
    def steps(self) -> int:
        """Updates, at most."""

    @property
    def modules(self) -> int:
        """Modules compiled for an update."""

    @property
    def callees(self) -> bool:
        """Give all sites of a callee the same draw in every second compile."""

    @property
    def credit(self) -> CreditSettings:
        """What decisions are paid."""

    @property
    def novelty(self) -> NoveltySettings:
        """A bonus for the unseen."""


S = TypeVar("S", bound=Settings)


@dataclass(frozen=True)
class PolicyGradientState:
    """Parameters, optimiser, and the averages that credit is against."""

    step: int
    walk: Walk
    averages: F64
    novelty: NoveltyState


@dataclass(frozen=True)
class Paid:
    """A batch whose decisions have been paid."""

    z: F32
    """Normalised features, ``[decisions, inputs]``."""
    reward: F64
    """``[decisions]``; higher is better."""
    advantage: F32
    """How much better than usual, with the bonus for the unseen, ``[decisions]``."""
    metrics: Metrics


@dataclass(frozen=True)
class PolicyGradient(Generic[S]):
    """A learner without its update. See :class:`nestor.learn.learner.Learner`."""

    settings: S
    seed: int
    start: MlpPolicy
    episodes: Episodes

    @property
    def steps(self) -> int:
        """How many updates make a run."""
        return self.settings.steps

    def init(self) -> PolicyGradientState:
        """Begin at the initial policy."""
        bonus = novelty.init(self.settings.novelty, self.start.widths[0], self.seed)
        totals = self.episodes.reference.totals
        return PolicyGradientState(0, Walk.begin(self.start), totals, bonus)

    def batch(self, state: PolicyGradientState) -> Batch:
        """Compile the next modules under the stochastic policy."""
        count = len(self.episodes.reference.stocks)
        modules = draw(self.seed, state.step, self.settings.modules, count)
        return self.episodes.sampled(
            self.policy(state), modules, self.seed, state.step, callees=self.settings.callees
        )

    def policy(self, state: PolicyGradientState) -> MlpPolicy:
        """Return the parameters as a policy."""
        return state.walk.policy(self.start)

    def paid(self, state: PolicyGradientState, batch: Batch) -> tuple[PolicyGradientState, Paid]:
        """Pay a batch; return the state after it, in which only the walk is still to move."""
        z = self.start.normalise(batch.x)
        reward, averages = pay(self.settings.credit, batch, state.averages)
        bonus, extra = novelty.update(self.settings.novelty, state.novelty, z, self.seed)
        better = advantages(reward, self.settings.credit.scheme) + extra
        metrics = {
            "relative_change_pct": 100 * batch.relative_change,
            "reward": float(reward.mean()) if len(reward) else 0.0,
            "positive_pct": 100 * float(batch.positive.mean()) if len(reward) else 0.0,
            "decisions": float(len(reward)),
        }
        after = replace(state, step=state.step + 1, averages=averages, novelty=bonus)
        return after, Paid(z, reward, better.astype(np.float32), metrics)
