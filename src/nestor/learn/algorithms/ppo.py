"""Proximal policy optimisation: use a batch several times, but do not go far on it.

The clipped objective of Schulman et al. (2017). Without a critic, as in MLGO: a decision's reward
is its own credit (:mod:`nestor.learn.credit`), so there is no return to predict. The epochs on a
batch end early when the policy has moved too far from the one that sampled it.
"""

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal

import numpy as np
import numpy.typing as npt

from nestor.learn.batch import Batch, rows_of
from nestor.learn.credit import CreditSettings
from nestor.learn.gradient.descent import descend, logits_of, minibatches
from nestor.learn.gradient.novelty import NoveltySettings
from nestor.learn.gradient.optimiser import OptimiserState
from nestor.learn.gradient.policy_gradient import PolicyGradient, PolicyGradientState
from nestor.learn.learner import Metrics
from nestor.learn.setup import Ready, Setup
from nestor.learn.start import StartSettings, first_policy

if TYPE_CHECKING:
    from torch import Tensor

    from nestor.policy.network import Network

I64 = npt.NDArray[np.int64]


@dataclass(frozen=True)
class PpoSettings:
    """How far and how often the policy moves."""

    preset: Literal["nestor", "mlgo"] = "nestor"
    """"mlgo" takes every other setting from the published configuration; see ``MLGO``."""
    steps: int = 1000
    """Updates, at most."""
    modules: int = 32
    """Units compiled for an update."""
    groups: bool = True
    """Give all questions of a group the same draw in every second compile. What only happens when
    a whole group agrees, such as a function that disappears, draws of their own would hardly ever
    show. A decision is then rewarded among others that mostly agree with it."""
    epochs: int = 6
    """Passes over a batch, at most."""
    minibatch: int = 1024
    """Questions per gradient step."""
    learning_rate: float = 2e-3
    """Adam's step size."""
    epsilon: float = 1e-8
    """Adam's epsilon: least divisor of a step."""
    clip: float = 0.2
    """How far from 1 the ratio of probabilities still counts."""
    entropy: float = 0.2
    """Units of reward that a nat of entropy is worth. It is a temperature: most answers that leave
    the default cost much, and without it all of them die out before the good ones are found."""
    stop: float = 0.02
    """Divergence from the sampling policy (KL, nats a decision) that ends the epochs."""
    credit: CreditSettings = field(default_factory=CreditSettings)
    """How decisions are rewarded."""
    novelty: NoveltySettings = field(default_factory=NoveltySettings)
    """A bonus for what was not seen before (random network distillation)."""
    start: StartSettings = field(default_factory=StartSettings)
    """Where to start."""


MLGO = PpoSettings(
    preset="mlgo",
    steps=3000,
    modules=100,
    groups=False,
    epochs=1,
    minibatch=256 * 16,
    learning_rate=3e-5,
    epsilon=3.125e-4,
    entropy=0.3,
    stop=float("inf"),
    credit=CreditSettings(scheme="module", decay=0.8),
    start=StartSettings(answers="decision", hidden=(40, 40, 20), explore=0.03),
)
"""The published configuration (``ppo_nn_agent.gin`` of ml-compiler-opt, 2022): batches of
256 sequences of 16 decisions, Adam at 3e-5, one epoch, no critic, the unit's total against its
moving average, the clone of the default as a start. Its entropy of 0.003 was for rewards as parts,
ours are per cent. Its features were quantiles; ours are squashed logarithms of the features that
are on offer today. It was made for 3,000 updates."""


@dataclass(frozen=True)
class Ppo(PolicyGradient[PpoSettings]):
    """The learner. See :class:`nestor.learn.learner.Learner`."""

    def update(
        self, state: PolicyGradientState, batch: Batch
    ) -> tuple[PolicyGradientState, Metrics]:
        """Take the epochs' steps up the clipped objective."""
        import torch

        settings, rule, step = self.settings, self.start.rule, state.step
        state, worth = self.rewarded(state, batch)
        if len(batch) == 0:
            return state, worth.metrics
        advantage, inputs = torch.from_numpy(worth.advantage), torch.from_numpy(worth.inputs)
        action = torch.from_numpy(batch.action)
        sampled = torch.from_numpy(batch.log_probability.astype(np.float32))
        optimiser, value, epoch, divergence = state.optimiser, 0.0, 0, 0.0
        for epoch in range(1, settings.epochs + 1):
            for chosen in minibatches(len(batch), settings.minibatch, [self.seed, 7, step, epoch]):

                def loss(net: "Network", chosen: I64 = chosen) -> "Tensor":
                    rows, question = map(torch.from_numpy, rows_of(batch.question, chosen))
                    logits, gain = net(inputs[rows]), advantage[chosen]
                    now = rule.torch_log_probability(logits, question, action[chosen])
                    ratio = torch.exp(now - sampled[chosen])
                    near = ratio.clamp(1 - settings.clip, 1 + settings.clip)
                    objective = torch.minimum(ratio * gain, near * gain).mean()
                    entropy = rule.torch_entropy(logits, question).mean()
                    return -objective - settings.entropy * entropy

                optimiser, value = descend(
                    self.start,
                    optimiser,
                    loss,
                    settings.learning_rate,
                    epsilon=settings.epsilon,
                )
            divergence = self._divergence(optimiser, inputs, batch)
            if divergence > settings.stop:
                break
        metrics = {
            **worth.metrics,
            "loss": value,
            "epochs": float(epoch),
            "divergence": divergence,
        }
        return replace(state, optimiser=optimiser), metrics

    def _divergence(self, optimiser: OptimiserState, inputs: "Tensor", batch: Batch) -> float:
        """Estimate KL(sampling policy ‖ present one) a decision: the mean of r − 1 − log r."""
        import torch

        logits = logits_of(self.start, optimiser.parameters, inputs)
        question, action = torch.from_numpy(batch.question), torch.from_numpy(batch.action)
        now = self.start.rule.torch_log_probability(logits, question, action)
        change = now.numpy().astype(np.float64) - batch.log_probability
        return float((np.expm1(change) - change).mean())


def set_up(settings: PpoSettings, setup: Setup) -> Ready:
    """Make the learner ready to run."""
    if settings.preset == "mlgo":
        settings = replace(MLGO, novelty=settings.novelty)
    episodes = setup.episodes(setup.problem.features.unit)
    start = first_policy(setup, episodes.reference, settings.start)
    return Ready(Ppo(settings, setup.seed, start, episodes), "PPO", start.features)
