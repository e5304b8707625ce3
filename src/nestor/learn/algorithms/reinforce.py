"""REINFORCE: make likelier what was rewarded (Williams, 1992).

One gradient step a batch, on policy, with the baseline that the scheme of credit has
(:mod:`nestor.learn.credit`). The first learner of MLGO was of this kind; PPO
(:mod:`nestor.learn.algorithms.ppo`) uses a batch more than once.
"""

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from nestor.learn.batch import Batch, chosen_rows
from nestor.learn.credit import CreditSettings, advantages, rewards
from nestor.learn.episodes import Episodes
from nestor.learn.gradient import novelty
from nestor.learn.gradient.descent import begin, descend, policy_of
from nestor.learn.gradient.novelty import NoveltySettings, NoveltyState
from nestor.learn.gradient.optimiser import OptimiserState
from nestor.learn.learner import Metrics
from nestor.learn.setup import Ready, Setup
from nestor.learn.start import StartSettings, first_policy
from nestor.policy.network import MlpPolicy

if TYPE_CHECKING:
    from torch import Tensor

    from nestor.policy.network import Network

F64 = npt.NDArray[np.float64]


@dataclass(frozen=True)
class ReinforceSettings:
    """How the policy follows its gradient."""

    steps: int = 1000
    """Updates, at most."""
    modules: int = 32
    """Units compiled for an update."""
    groups: bool = True
    """Give all questions of a group the same draw in every second compile. What only happens when
    a whole group agrees, such as a function that disappears, draws of their own would hardly ever
    show. A decision is then rewarded among others that mostly agree with it."""
    learning_rate: float = 0.05
    """Adam's step size."""
    entropy: float = 0.2
    """Units of reward that a nat of entropy is worth. It is a temperature: most answers that leave
    the default cost much, and without it all of them die out before the good ones are found."""
    credit: CreditSettings = field(default_factory=CreditSettings)
    """How decisions are rewarded."""
    novelty: NoveltySettings = field(default_factory=NoveltySettings)
    """A bonus for what was not seen before (random network distillation)."""
    start: StartSettings = field(default_factory=StartSettings)
    """Where to start."""


@dataclass(frozen=True)
class ReinforceState:
    """The policy's parameters, and what rewards are measured against."""

    step: int
    optimiser: OptimiserState
    averages: F64
    """Moving average of each unit's score, ``[units]``."""
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
        predictor = novelty.begin(self.settings.novelty, self.start.widths[0], self.seed)
        return ReinforceState(0, begin(self.start), self.episodes.reference.totals, predictor)

    def batch(self, state: ReinforceState) -> Batch:
        """Compile the next units under the stochastic policy."""
        units = self.episodes.drawn(self.seed, state.step, self.settings.modules)
        return self.episodes.sampled(
            self.policy(state), units, self.seed, state.step, groups=self.settings.groups
        )

    def update(self, state: ReinforceState, batch: Batch) -> tuple[ReinforceState, Metrics]:
        """Take one step up the policy's gradient."""
        import torch

        settings, rule, problem = self.settings, self.start.rule, self.episodes.reference.problem
        z = self.start.normalise(batch.x)
        reward, averages = rewards(settings.credit, batch, state.averages, problem)
        acted_on = z[chosen_rows(rule, batch.question, batch.action)]
        predictor, bonus = novelty.update(settings.novelty, state.novelty, acted_on, self.seed)
        state = replace(state, step=state.step + 1, averages=averages, novelty=predictor)
        metrics = {"relative_change_pct": 100 * batch.relative_change}
        if len(batch) == 0:
            return state, metrics
        better = advantages(reward, settings.credit.scheme) + bonus
        advantage = torch.from_numpy(better.astype(np.float32))
        inputs, question = torch.from_numpy(z), torch.from_numpy(batch.question)
        action = torch.from_numpy(batch.action)

        def loss(net: "Network") -> "Tensor":
            logits = net(inputs)
            objective = (advantage * rule.torch_log_probability(logits, question, action)).mean()
            entropy = rule.torch_entropy(logits, question).mean()
            return -objective - settings.entropy * entropy

        optimiser, value = descend(self.start, state.optimiser, loss, settings.learning_rate)
        metrics |= {
            "reward": float(reward.mean()),
            "acted_pct": batch.acted_pct,
            "decisions": float(len(batch)),
            "loss": value,
        }
        return replace(state, optimiser=optimiser), metrics

    def policy(self, state: ReinforceState) -> MlpPolicy:
        """Return the parameters as a policy."""
        return policy_of(self.start, state.optimiser.parameters)


def set_up(settings: ReinforceSettings, setup: Setup) -> Ready:
    """Make the learner ready to run."""
    episodes = setup.episodes(setup.problem.features.unit)
    start = first_policy(setup, episodes.reference, settings.start)
    return Ready(Reinforce(settings, setup.seed, start, episodes), "REINFORCE", start.features)
