"""Proximal policy optimisation: use a batch several times, but do not go far on it.

The clipped objective of Schulman et al. (2017). Without a critic, as MLGO has it: a decision's
reward is its own credit (:mod:`nestor.learn.credit`), so there is no return to predict. The
epochs on a batch end early when the policy has moved too far from the one that sampled it.
"""

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal

import numpy as np

from nestor.learn.credit import CreditSettings
from nestor.learn.features import MODULE_FEATURES
from nestor.learn.gradient import Walk, descend, entropy, log_probabilities, minibatches
from nestor.learn.policy_gradient import Paid, PolicyGradient, PolicyGradientState
from nestor.learn.random_network_distillation import NoveltySettings
from nestor.learn.setup import Ready, Setup
from nestor.learn.start import StartSettings

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True)
class PpoSettings:
    """How far and how often the policy moves."""

    preset: Literal["nestor", "mlgo"] = "nestor"
    """"mlgo" takes every other setting from the published configuration; see ``MLGO``."""
    steps: int = 1000
    """Updates, at most."""
    modules: int = 32
    """Modules compiled for an update."""
    callees: bool = True
    """Give all sites of a callee the same draw in every second compile: a function goes away only
    if all its calls are inlined, and draws of their own would hardly ever show that. A site is then
    paid for its answer among others that mostly agree with it."""
    epochs: int = 6
    """Passes over a batch, at most."""
    minibatch: int = 1024
    """Decisions per gradient step."""
    learning_rate: float = 2e-3
    """Adam's step size."""
    epsilon: float = 1e-8
    """Adam's smallest deviation."""
    clip: float = 0.2
    """How far from 1 the ratio of probabilities still pays."""
    entropy: float = 0.2
    """Units of reward that a nat of entropy is worth. It is a temperature: most answers that leave
    the default cost much, and without it all of them die out before the good ones are found."""
    stop: float = 0.02
    """Divergence from the sampling policy (KL, nats a decision) that ends the epochs."""
    credit: CreditSettings = field(default_factory=CreditSettings)
    """What decisions are paid."""
    novelty: NoveltySettings = field(default_factory=NoveltySettings)
    """A bonus for the unseen (random network distillation)."""
    start: StartSettings = field(default_factory=StartSettings)
    """Where to start."""


MLGO = PpoSettings(
    preset="mlgo",
    steps=3000,
    modules=100,
    callees=False,
    epochs=1,
    minibatch=256 * 16,
    learning_rate=3e-5,
    epsilon=3.125e-4,
    entropy=0.3,
    stop=float("inf"),
    credit=CreditSettings(scheme="module", decay=0.8),
    start=StartSettings(answers="decision", hidden=(40, 40, 20), explore=0.03),
)
"""MLGO's configuration for inlining (``ppo_nn_agent.gin`` of ml-compiler-opt, 2022): batches of
256 sequences of 16 decisions, Adam at 3e-5, one epoch, no critic, the module's total against its
moving average, the clone of the default as a start. Its entropy of 0.003 was for rewards as parts,
ours are per cent. Its features were quantiles; ours are squashed logarithms of the features that
are on offer today. It was made for 3,000 updates."""


@dataclass(frozen=True)
class Ppo(PolicyGradient[PpoSettings]):
    """The learner. See :class:`nestor.learn.learner.Learner`."""

    def _stepped(self, state: PolicyGradientState, paid: Paid) -> tuple[Walk, dict[str, float]]:
        """Take the epochs' steps up the clipped objective."""
        import torch

        before, count = paid.log_probability.float(), len(paid.inputs)
        walk, value, epoch, divergence = state.walk, 0.0, 0, 0.0
        for epoch in range(1, self.settings.epochs + 1):
            seed = [self.seed, 7, state.step, epoch]
            for rows in minibatches(count, self.settings.minibatch, seed):
                chosen = torch.from_numpy(rows)

                def loss(net: "torch.nn.Module", chosen: "torch.Tensor" = chosen) -> "torch.Tensor":
                    logits, advantage = net(paid.inputs[chosen]), paid.advantage[chosen]
                    now = log_probabilities(logits, paid.positive[chosen])
                    ratio = torch.exp(now - before[chosen])
                    near = ratio.clamp(1 - self.settings.clip, 1 + self.settings.clip)
                    gained = torch.minimum(ratio * advantage, near * advantage)
                    return -gained.mean() - self.settings.entropy * entropy(logits)

                walk, value = descend(
                    self.start,
                    walk,
                    loss,
                    self.settings.learning_rate,
                    epsilon=self.settings.epsilon,
                )
            divergence = self._divergence(walk, paid)
            if divergence > self.settings.stop:
                break
        return walk, {"loss": value, "epochs": float(epoch), "divergence": divergence}

    def _divergence(self, walk: Walk, paid: Paid) -> float:
        """Estimate KL(sampling policy ‖ present one) a decision: the mean of r − 1 − log r."""
        import torch

        from nestor.policy import network

        with torch.no_grad():
            logits = network.to_torch(walk.policy(self.start))(paid.inputs)
            now = log_probabilities(logits, paid.positive)
        change = now.numpy().astype(np.float64) - paid.log_probability.numpy()
        return float((np.expm1(change) - change).mean())


def set_up(settings: PpoSettings, setup: Setup) -> Ready:
    """Make the learner ready to run."""
    if settings.preset == "mlgo":
        settings = replace(MLGO, novelty=settings.novelty)
    episodes = setup.episodes(MODULE_FEATURES)
    start = setup.start(settings.start, episodes)
    return Ready(Ppo(settings, setup.seed, start, episodes), "PPO", start.features)
