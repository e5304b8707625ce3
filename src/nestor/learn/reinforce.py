"""REINFORCE: make likelier what was paid for (Williams, 1992).

One gradient step a batch, on policy, with the credit's own baseline (:mod:`nestor.learn.credit`).
The first learner of MLGO was of this kind; PPO (:mod:`nestor.learn.ppo`) uses a batch more than
once.
"""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from nestor.learn.credit import CreditSettings
from nestor.learn.features import MODULE_FEATURES
from nestor.learn.gradient import Walk, descend, entropy, log_probabilities
from nestor.learn.policy_gradient import Paid, PolicyGradient, PolicyGradientState
from nestor.learn.random_network_distillation import NoveltySettings
from nestor.learn.setup import Ready, Setup
from nestor.learn.start import StartSettings

if TYPE_CHECKING:
    import torch


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
    learning_rate: float = 0.05
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
class Reinforce(PolicyGradient[ReinforceSettings]):
    """The learner. See :class:`nestor.learn.learner.Learner`."""

    def _stepped(self, state: PolicyGradientState, paid: Paid) -> tuple[Walk, dict[str, float]]:
        """Take one step up the policy's gradient."""

        def loss(net: "torch.nn.Module") -> "torch.Tensor":
            logits = net(paid.inputs)
            gained = (paid.advantage * log_probabilities(logits, paid.positive)).mean()
            return -gained - self.settings.entropy * entropy(logits)

        walk, value = descend(self.start, state.walk, loss, self.settings.learning_rate)
        return walk, {"loss": value}


def set_up(settings: ReinforceSettings, setup: Setup) -> Ready:
    """Make the learner ready to run."""
    episodes = setup.episodes(MODULE_FEATURES)
    start = setup.start(settings.start, episodes)
    return Ready(Reinforce(settings, setup.seed, start, episodes), "REINFORCE", start.features)
