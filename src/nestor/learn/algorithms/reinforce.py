"""REINFORCE: make likelier what was rewarded (Williams, 1992).

One gradient step a batch, on policy, with the baseline that the scheme of credit has
(:mod:`nestor.learn.credit`). The first learner of MLGO was of this kind; PPO
(:mod:`nestor.learn.algorithms.ppo`) uses a batch more than once.
"""

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from nestor.learn.batch import Batch
from nestor.learn.credit import CreditSettings
from nestor.learn.gradient.descent import descend
from nestor.learn.gradient.novelty import NoveltySettings
from nestor.learn.gradient.policy_gradient import PolicyGradient, PolicyGradientState
from nestor.learn.learner import Metrics
from nestor.learn.setup import Ready, Setup
from nestor.learn.start import StartSettings, first_policy

if TYPE_CHECKING:
    from torch import Tensor

    from nestor.policy.network import Network


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
class Reinforce(PolicyGradient[ReinforceSettings]):
    """The learner. See :class:`nestor.learn.learner.Learner`."""

    def update(
        self, state: PolicyGradientState, batch: Batch
    ) -> tuple[PolicyGradientState, Metrics]:
        """Take one step up the policy's gradient."""
        import torch

        settings, rule = self.settings, self.start.rule
        state, worth = self.rewarded(state, batch)
        if len(batch) == 0:
            return state, worth.metrics
        advantage, inputs = torch.from_numpy(worth.advantage), torch.from_numpy(worth.inputs)
        question, action = torch.from_numpy(batch.question), torch.from_numpy(batch.action)

        def loss(net: "Network") -> "Tensor":
            logits = net(inputs)
            objective = (advantage * rule.torch_log_probability(logits, question, action)).mean()
            entropy = rule.torch_entropy(logits, question).mean()
            return -objective - settings.entropy * entropy

        optimiser, value = descend(self.start, state.optimiser, loss, settings.learning_rate)
        return replace(state, optimiser=optimiser), {**worth.metrics, "loss": value}


def set_up(settings: ReinforceSettings, setup: Setup) -> Ready:
    """Make the learner ready to run."""
    episodes = setup.episodes(setup.problem.features.unit)
    start = first_policy(setup, episodes.reference, settings.start)
    return Ready(Reinforce(settings, setup.seed, start, episodes), "REINFORCE", start.features)
