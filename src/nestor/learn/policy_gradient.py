"""What learners by policy gradient share: all but the step that they take on a paid batch."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from nestor.learn import episodic
from nestor.learn import random_network_distillation as novelty
from nestor.learn.batch import Batch
from nestor.learn.credit import CreditSettings, advantages, pay
from nestor.learn.episodic import Episodic
from nestor.learn.gradient import Walk
from nestor.learn.learner import Metrics
from nestor.learn.random_network_distillation import NoveltySettings, NoveltyState
from nestor.policy.network import MlpPolicy

if TYPE_CHECKING:
    import torch

F64 = npt.NDArray[np.float64]


class Settings(episodic.Settings, Protocol):
    """What the settings of such a learner have in common."""

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
    """A batch whose decisions have been paid, each ``[decisions]``."""

    inputs: "torch.Tensor"
    """Normalised features, f32 ``[decisions, inputs]``."""
    positive: "torch.Tensor"
    """The actions."""
    log_probability: "torch.Tensor"
    """Of the actions when they were sampled, f64."""
    advantage: "torch.Tensor"
    """How much better than usual, with the bonus for the unseen, f32."""


@dataclass(frozen=True)
class PolicyGradient(Episodic[S], ABC):
    """A learner that is to be given its step. See :class:`nestor.learn.learner.Learner`."""

    def init(self) -> PolicyGradientState:
        """Begin at the initial policy."""
        bonus = novelty.init(self.settings.novelty, self.start.widths[0], self.seed)
        totals = self.episodes.reference.totals
        return PolicyGradientState(0, Walk.begin(self.start), totals, bonus)

    def batch(self, state: PolicyGradientState) -> Batch:
        """Compile the next modules under the stochastic policy."""
        modules = self.drawn(state)
        return self.episodes.sampled(
            self.policy(state), modules, self.seed, state.step, callees=self.settings.callees
        )

    def policy(self, state: PolicyGradientState) -> MlpPolicy:
        """Return the parameters as a policy."""
        return state.walk.policy(self.start)

    def update(
        self, state: PolicyGradientState, batch: Batch
    ) -> tuple[PolicyGradientState, Metrics]:
        """Pay the batch and step on it."""
        import torch

        z = self.start.normalise(batch.x)
        reward, averages = pay(self.settings.credit, batch, state.averages)
        bonus, extra = novelty.update(self.settings.novelty, state.novelty, z, self.seed)
        after = replace(state, step=state.step + 1, averages=averages, novelty=bonus)
        metrics = {"relative_change_pct": 100 * batch.relative_change}
        if len(reward) == 0:
            return after, metrics
        better = advantages(reward, self.settings.credit.scheme) + extra
        paid = Paid(
            torch.from_numpy(z),
            torch.from_numpy(batch.positive),
            torch.from_numpy(batch.log_probability),
            torch.from_numpy(better.astype(np.float32)),
        )
        walk, more = self._stepped(state, paid)
        metrics |= {
            "reward": float(reward.mean()),
            "positive_pct": 100 * float(batch.positive.mean()),
            "decisions": float(len(reward)),
            **more,
        }
        return replace(after, walk=walk), metrics

    @abstractmethod
    def _stepped(self, state: PolicyGradientState, paid: Paid) -> tuple[Walk, Mapping[str, float]]:
        """Return where the walk of ``state`` goes on ``paid``, and what there is to plot."""
