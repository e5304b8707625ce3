"""Behavioural cloning: learn the default heuristic's answers from its own trajectories.

The warm start of the MLGO paper (Trofin et al., 2021, section 4.2): supervised learning on the
default policy's decisions gives a network that compiles like the stock compiler, from which a
learner that needs rewards can start.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from nestor.learn.adam import Moments, adam
from nestor.learn.learner import Metrics
from nestor.policy import network
from nestor.policy.network import LogNormalisation, MlpPolicy

F32 = npt.NDArray[np.float32]
F64 = npt.NDArray[np.float64]


@dataclass(frozen=True)
class CloningSettings:
    """How the default heuristic is cloned."""

    hidden: tuple[int, ...] = ()
    """Widths of the hidden layers. None makes the policy linear in the squashed features, which
    clones the default at -Oz exactly and goes on sensibly beyond the training data."""
    steps: int = 3000
    """Gradient steps."""
    batch_size: int = 1024
    """Decisions per step."""
    learning_rate: float = 0.03
    """Adam's step size at the start; it falls to 0 along a cosine."""
    smoothing: float = 0.0
    """Labels are this far from 0 and 1. It keeps logits small, also far from the decision."""


@dataclass(frozen=True)
class CloningState:
    """The network's parameters and Adam's moments."""

    step: int
    parameters: F64
    moments: Moments


@dataclass(frozen=True)
class Decisions:
    """Normalised features f32 ``[n, features]`` and the default's answers f32 ``[n]``."""

    features: F32
    answers: F32


@dataclass(frozen=True)
class BehaviouralCloning:
    """The learner. See :class:`nestor.learn.learner.Learner`."""

    settings: CloningSettings
    seed: int
    template: MlpPolicy
    """Initial network with the normalisation fitted on the corpus."""
    decisions: Decisions = field(repr=False)
    raw: F64 = field(repr=False)
    """The features as the compiler gave them, f64 ``[n, features]``."""

    @staticmethod
    def fit(
        settings: CloningSettings, seed: int, names: Sequence[str], x: F64, answers: F64
    ) -> "BehaviouralCloning":
        """Set up cloning of ``answers`` ``[n]`` to the features ``x`` ``[n, names]``."""
        normalisation = LogNormalisation(*network.fit_normalisation(x))
        widths = (len(names), *settings.hidden, 1)
        layers = network.initial_layers(widths, np.random.default_rng([seed, 0]))
        template = network.build(
            tuple(names), "decision", normalisation, layers, problem="inlining-size"
        )
        decisions = Decisions(template.normalise(x), answers.astype(np.float32))
        return BehaviouralCloning(settings, seed, template, decisions, x)

    @property
    def steps(self) -> int:
        """How many gradient steps make a run."""
        return self.settings.steps

    def init(self) -> CloningState:
        """Return the randomly initialised network."""
        parameters = self.template.flatten_parameters().astype(np.float64)
        return CloningState(0, parameters, Moments.zeros(len(parameters)))

    def batch(self, state: CloningState) -> Decisions:
        """Draw the decisions of one step, with replacement."""
        generator = np.random.default_rng([self.seed, 1, state.step])
        chosen = generator.integers(len(self.decisions.answers), size=self.settings.batch_size)
        return Decisions(self.decisions.features[chosen], self.decisions.answers[chosen])

    def update(self, state: CloningState, batch: Decisions) -> tuple[CloningState, Metrics]:
        """Take one step down the cross-entropy."""
        import torch  # only a training run pays for its import

        torch.set_num_threads(1)  # sums in one order, whatever the machine
        net = network.to_torch(self.policy(state))
        logits = net(torch.from_numpy(batch.features))
        answers = torch.from_numpy(batch.answers)
        smooth = answers * (1 - 2 * self.settings.smoothing) + self.settings.smoothing
        loss = torch.nn.functional.binary_cross_entropy_with_logits(logits, smooth)
        loss.backward()  # type: ignore[no-untyped-call]
        gradient = torch.cat([p.grad.reshape(-1) for p in net.parameters() if p.grad is not None])
        rate = self.settings.learning_rate * 0.5 * (1 + np.cos(np.pi * state.step / self.steps))
        change, moments = adam(gradient.numpy().astype(np.float64), state.moments, state.step, rate)
        agreement = ((logits > 0) == (answers > 0.5)).float().mean()
        metrics = {"loss": float(loss.detach()), "agreement": float(agreement)}
        return CloningState(state.step + 1, state.parameters + change, moments), metrics

    def policy(self, state: CloningState) -> MlpPolicy:
        """Return the network as a policy."""
        return self.template.with_parameters(state.parameters.astype(np.float32))

    def agreement(self, state: CloningState) -> float:
        """Return the fraction of all decisions on which the clone agrees with the default."""
        answers = self.policy(state).answer(self.raw)
        return float((answers == (self.decisions.answers > 0.5)).mean())
