"""REINFORCE: make likelier what was paid for (Williams, 1992).

One gradient step a batch, on policy, with the credit's own baseline (:mod:`nestor.learn.credit`).
The first learner of MLGO was of this kind; PPO (:mod:`nestor.learn.ppo`) uses a batch more than
once.
"""

from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from nestor.learn import random_network_distillation as novelty
from nestor.learn.batch import Batch
from nestor.learn.credit import CreditSettings, advantages, pay
from nestor.learn.episodes import Episodes, draw
from nestor.learn.gradient import Walk, descend, entropy, log_probabilities
from nestor.learn.learner import Metrics
from nestor.learn.random_network_distillation import NoveltySettings, NoveltyState
from nestor.learn.setup import Ready, Setup
from nestor.learn.start import SITE_FEATURES, StartSettings
from nestor.policy.network import MlpPolicy

F64 = npt.NDArray[np.float64]


@dataclass(frozen=True)
class ReinforceSettings:
    """How the policy follows its gradient."""

    steps: int = 1000
    """Updates, at most."""
    modules: int = 32
    """Modules compiled for an update."""
    callees: bool = True
    """Give all sites of a callee the same draw in every second compile: a function goes away only
    if all its calls are inlined, and draws of their own would hardly ever show that. A site is then
    paid for its answer among others that mostly agree with it."""
    learning_rate: float = 1e-2
    """Adam's step size."""
    entropy: float = 0.2
    """Units of reward that a nat of entropy is worth. It is a temperature: most answers that leave
    the default cost much, and without it all of them die out before the good ones are found."""
    credit: CreditSettings = field(default_factory=CreditSettings)
    """What decisions are paid."""
    novelty: NoveltySettings = field(default_factory=NoveltySettings)
    """A bonus for the unseen (random network distillation)."""
    start: StartSettings = field(default_factory=StartSettings)
    """Where to start."""


@dataclass(frozen=True)
class ReinforceState:
    """Parameters, optimiser, and the averages that credit is against."""

    step: int
    walk: Walk
    averages: F64
    novelty: NoveltyState


@dataclass(frozen=True)
class Reinforce:
    """The learner. See :class:`nestor.learn.learner.Learner`."""

    settings: ReinforceSettings
    seed: int
    start: MlpPolicy
    episodes: Episodes

    @property
    def steps(self) -> int:
        """How many updates make a run."""
        return self.settings.steps

    def init(self) -> ReinforceState:
        """Begin at the initial policy."""
        bonus = novelty.init(self.settings.novelty, self.start.widths[0], self.seed)
        totals = self.episodes.reference.totals
        return ReinforceState(0, Walk.begin(self.start), totals, bonus)

    def batch(self, state: ReinforceState) -> Batch:
        """Compile the next modules under the stochastic policy."""
        count = len(self.episodes.reference.stocks)
        modules = draw(self.seed, state.step, self.settings.modules, count)
        return self.episodes.sampled(
            self.policy(state), modules, self.seed, state.step, callees=self.settings.callees
        )

    def update(self, state: ReinforceState, batch: Batch) -> tuple[ReinforceState, Metrics]:
        """Take one step up the policy's gradient."""
        import torch

        state = replace(state, step=state.step + 1)
        if len(batch.x) == 0:
            return state, {"relative_change_pct": 0.0}
        z = self.start.normalise(batch.x)
        rewards, averages = pay(self.settings.credit, batch, state.averages)
        bonus, extra = novelty.update(self.settings.novelty, state.novelty, z, self.seed)
        better = advantages(rewards, self.settings.credit.scheme) + extra
        advantage = torch.from_numpy(better.astype(np.float32))
        inputs, positive = torch.from_numpy(z), torch.from_numpy(batch.positive)

        def loss(net: "torch.nn.Module") -> "torch.Tensor":
            margins = net(inputs)
            gained = (advantage * log_probabilities(margins, positive)).mean()
            return -gained - self.settings.entropy * entropy(margins)

        walk, value = descend(self.start, state.walk, loss, self.settings.learning_rate)
        return replace(state, walk=walk, averages=averages, novelty=bonus), {
            "relative_change_pct": 100 * batch.relative_change,
            "reward": float(rewards.mean()),
            "positive_pct": 100 * float(batch.positive.mean()),
            "loss": value,
            "decisions": float(len(batch.x)),
        }

    def policy(self, state: ReinforceState) -> MlpPolicy:
        """Return the parameters as a policy."""
        return state.walk.policy(self.start)


def set_up(settings: ReinforceSettings, setup: Setup) -> Ready:
    """Make the learner ready to run."""
    episodes = setup.episodes(SITE_FEATURES)
    start = setup.start(settings.start, episodes)
    return Ready(Reinforce(settings, setup.seed, start, episodes), "REINFORCE", start.features)
