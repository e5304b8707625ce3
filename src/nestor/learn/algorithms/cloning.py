"""Behavioural cloning: learn the default heuristic's answers from its own trajectories.

The warm start of the MLGO paper (Trofin et al., 2021, section 4.2): supervised learning on the
default policy's decisions gives a network that compiles like the stock compiler, from which a
learner that needs rewards can start.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from nestor.learn.answers import default_examples
from nestor.learn.batch import Examples, rows_of
from nestor.learn.gradient.descent import begin, descend, policy_of
from nestor.learn.gradient.imitation import imitation_loss
from nestor.learn.gradient.optimiser import OptimiserState
from nestor.learn.learner import Metrics
from nestor.learn.programs import default_rollouts
from nestor.learn.setup import Ready, Setup
from nestor.learn.training import Result
from nestor.policy import network
from nestor.policy.network import LogNormalisation, MlpPolicy
from nestor.policy.rule import Actions, Rule
from nestor.policy.spec import Metadata

if TYPE_CHECKING:
    from torch import Tensor

    from nestor.policy.network import Network

F32 = npt.NDArray[np.float32]
I64 = npt.NDArray[np.int64]


@dataclass(frozen=True)
class CloningSettings:
    """How the default heuristic is cloned."""

    hidden: tuple[int, ...] = ()
    """Widths of the hidden layers. None makes the policy linear in the squashed features, which
    goes on sensibly beyond the training data."""
    steps: int = 3000
    """Gradient steps."""
    batch_size: int = 1024
    """Questions per step."""
    learning_rate: float = 0.03
    """Adam's step size at the start; it falls to 0 along a cosine."""
    smoothing: float = 0.0
    """Labels are this far from 0 and 1. It keeps logits small, also far from the decision."""


@dataclass(frozen=True)
class CloningState:
    """The network's parameters and the optimiser."""

    step: int
    optimiser: OptimiserState


@dataclass(frozen=True)
class Cloning:
    """The learner. See :class:`nestor.learn.learner.Learner`."""

    settings: CloningSettings
    seed: int
    template: MlpPolicy
    """Initial network, with the normalisation fitted to the examples."""
    examples: Examples = field(repr=False)
    z: F32 = field(repr=False)
    """The examples' normalised features, ``[rows, inputs]``."""

    @staticmethod
    def fit(
        settings: CloningSettings,
        seed: int,
        features: tuple[str, ...],
        examples: Examples,
        problem: str,
        rule: Rule,
    ) -> "Cloning":
        """Set up cloning of ``examples`` with these features, for a problem of this name."""
        normalisation = LogNormalisation(*network.fit_normalisation(examples.x))
        widths = (len(features), *settings.hidden, 1)
        layers = network.initial_layers(widths, np.random.default_rng([seed, 0]))
        metadata = Metadata("mlp", features, "decision", "log", problem=problem, rule=rule.name)
        template = MlpPolicy(metadata, normalisation, layers)
        return Cloning(settings, seed, template, examples, template.normalise(examples.x))

    @property
    def steps(self) -> int:
        """How many gradient steps make a run."""
        return self.settings.steps

    def init(self) -> CloningState:
        """Return the randomly initialised network."""
        return CloningState(0, begin(self.template))

    def batch(self, state: CloningState) -> I64:
        """Draw the questions of one step, with replacement."""
        generator = np.random.default_rng([self.seed, 1, state.step])
        return generator.integers(len(self.examples.action), size=self.settings.batch_size)

    def update(self, state: CloningState, batch: I64) -> tuple[CloningState, Metrics]:
        """Take one step down the cross-entropy."""
        import torch

        rows, question = rows_of(self.examples.question, batch)
        z, action = self.z[rows], self.examples.action[batch]
        inputs, questions = torch.from_numpy(z), torch.from_numpy(question)
        actions, rule = torch.from_numpy(action), self.template.rule
        agreement = 0.0

        def loss(net: "Network") -> "Tensor":
            nonlocal agreement
            logits = net(inputs)
            greedy = rule.greedy(logits.detach().numpy().astype(np.float64), question)
            agreement = _agreeing(greedy, action)
            return imitation_loss(rule, logits, questions, actions, self.settings.smoothing)

        rate = self.settings.learning_rate * 0.5 * (1 + np.cos(np.pi * state.step / self.steps))
        optimiser, value = descend(
            self.template, state.optimiser, loss, float(rate), clip=float("inf")
        )
        return CloningState(state.step + 1, optimiser), {"loss": value, "agreement": agreement}

    def policy(self, state: CloningState) -> MlpPolicy:
        """Return the network as a policy."""
        return policy_of(self.template, state.optimiser.parameters)

    def agreement(self, policy: MlpPolicy) -> float:
        """Return the part of all questions on which ``policy`` agrees with the examples."""
        actions = policy.actions(self.examples.x, self.examples.question)
        return _agreeing(actions, self.examples.action)


def _agreeing(one: Actions, other: Actions) -> float:
    """Return the part of actions that are the same; values agree within a tenth."""
    return float((np.abs(one - other) < 0.1).mean())


def clone(learner: Cloning) -> MlpPolicy:
    """Run cloning to its end and return the clone."""
    state = learner.init()
    for _ in range(learner.steps):
        state, _metrics = learner.update(state, learner.batch(state))
    return learner.policy(state)


def set_up(settings: CloningSettings, setup: Setup) -> Ready:
    """Make behavioural cloning ready to run."""
    problem, pool = setup.problem, setup.pool
    units = pool.corpus.modules_of("train")
    done = default_rollouts(pool, units, setup.tally, setup.progress).values()
    logs = [rolled.trajectory for rolled in done if rolled.trajectory is not None]
    features = setup.features or problem.features.free
    examples = default_examples(logs, features, problem.rule)
    learner = Cloning.fit(settings, setup.seed, features, examples, problem.name, problem.rule)

    def after(result: Result) -> Mapping[str, Any]:
        assert isinstance(result.policy, MlpPolicy)
        return {"decisions": len(examples.action), "agreement": learner.agreement(result.policy)}

    return Ready(learner, "Cloning the default heuristic", features, after)
