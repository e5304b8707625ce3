"""Deep Q-learning: learn what each action is worth, and mostly take the best one.

Under the rule ``threshold`` the values of *act* and *do not* are the network's two outputs, and
their difference is the policy's logit; under ``pick`` a row's output is the value of choosing it
(Mnih et al., 2015; the RFC that brought MLGO to LLVM named it first). Rewarded decisions are
remembered and used again. With a discount of 0 a decision's value is its own credit, which makes
the learner a regression on a bandit; above 0 the next decision of the unit counts too, by the
target network.

Three things differ from what was published. The loss is the squared error, not Huber's: few moves
gain, but those gain much, and an error counted by its absolute value learns the median, which never
does. Under a threshold each action's value is a regression of its own, so a minibatch is drawn half
from either: one decision in twenty leaves the default, and the rest would drown it. And the target
network is the running average of the other one (Lillicrap et al., 2016) and makes the final policy:
which actions are just worth it changes from one update to the next.

The compiler explores. Either as the values say (softmax: what is believed to cost a little is tried
more often than what costs much, and most answers that leave the default cost much); or with a
probability of ε an answer is random, as published. That is a network as well, whose logit is cut
at the logarithm of the odds (:func:`epsilon_greedy`).
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal

import numpy as np
import numpy.typing as npt

from nestor.errors import NestorError
from nestor.learn.batch import Batch
from nestor.learn.credit import CreditSettings, at_the_end, rewards
from nestor.learn.episodes import Episodes
from nestor.learn.gradient.descent import begin, descend, policy_of
from nestor.learn.gradient.memory import Memory
from nestor.learn.gradient.optimiser import OptimiserState
from nestor.learn.learner import Metrics
from nestor.learn.setup import Ready, Setup
from nestor.learn.start import StartSettings, first_policy, with_two_outputs
from nestor.policy import network
from nestor.policy.network import Layer, MlpPolicy
from nestor.policy.questions import first_rows
from nestor.policy.rule import PICK, THRESHOLD

if TYPE_CHECKING:
    from torch import Tensor

    from nestor.policy.network import Network

F32 = npt.NDArray[np.float32]
F64 = npt.NDArray[np.float64]
I64 = npt.NDArray[np.int64]

_STEEP = np.float32(1024)
"""A logit of more than c/1024, c the logarithm of the odds, is greedy."""


@dataclass(frozen=True)
class DqnSettings:
    """How values are learned and followed."""

    steps: int = 1000
    """Updates, at most."""
    modules: int = 32
    """Units compiled for an update."""
    explore: Literal["softmax", "epsilon"] = "softmax"
    """How answers are drawn."""
    temperature: float = 0.3
    """Units of reward that make an answer e times less likely (softmax only)."""
    epsilon: float = 0.1
    """Part of the answers that are random (epsilon only)."""
    groups: bool = True
    """Give all questions of a group the same draw in every second compile. What only happens when
    a whole group agrees, such as a function that disappears, draws of their own would hardly ever
    show."""
    discount: float = 0.0
    """What the next decision's value counts."""
    gradient_steps: int = 60
    """Per update."""
    minibatch: int = 512
    """Decisions per gradient step."""
    learning_rate: float = 1e-3
    """Adam's step size."""
    capacity: int = 300_000
    """Decisions that are remembered. Under a threshold and without a discount no more are kept of
    an update's commoner action than of the other: the first updates, in which few leave the
    default at once and credit is clearest, should not be forgotten."""
    average: float = 0.999
    """What a gradient step leaves of the target network; the rest is the other one's. The first
    steps leave less."""
    caution: float = 0.3
    """By how much the value of acting must be greater in the final policy (units of reward;
    threshold only)."""
    credit: CreditSettings = field(default_factory=CreditSettings)
    """How decisions are rewarded."""
    start: StartSettings = field(default_factory=lambda: StartSettings(hidden=(64, 64)))
    """Where to start; acting is believed to be as bad as makes it as likely as its ``explore``."""

    def __post_init__(self) -> None:
        if not 0 < self.epsilon < 1:
            raise NestorError("The part of random answers must be between 0 and 1.")
        if not self.temperature > 0:
            raise NestorError("The temperature must be above 0.")


@dataclass(frozen=True)
class DqnState:
    """Both networks, what rewards are measured against, and the memory."""

    step: int
    optimiser: OptimiserState
    target: F64
    """The target network's parameters, ``[parameters]``."""
    averages: F64
    """Moving average of each unit's score, ``[units]``."""
    memory: Memory


@dataclass(frozen=True)
class Dqn:
    """The learner. See :class:`nestor.learn.learner.Learner`."""

    settings: DqnSettings
    seed: int
    start: MlpPolicy
    """Under a threshold it has two outputs."""
    episodes: Episodes

    @property
    def steps(self) -> int:
        """How many updates make a run."""
        return self.settings.steps

    def init(self) -> DqnState:
        """Begin at the initial policy, with no memory."""
        first = begin(self.start)
        memory = Memory.empty(self.start.widths[0])
        return DqnState(0, first, first.parameters, self.episodes.reference.totals, memory)

    def batch(self, state: DqnState) -> Batch:
        """Compile the next units under the exploring policy."""
        settings = self.settings
        units = self.episodes.drawn(self.seed, state.step, settings.modules)
        policy, temperature = policy_of(self.start, state.optimiser.parameters), None
        if settings.explore == "softmax":
            temperature = settings.temperature
        else:
            policy = epsilon_greedy(policy, settings.epsilon)
        return self.episodes.sampled(
            policy, units, self.seed, state.step, temperature=temperature, groups=settings.groups
        )

    def update(self, state: DqnState, batch: Batch) -> tuple[DqnState, Metrics]:
        """Remember the batch and fit the values to draws from the memory."""
        import torch

        settings, step = self.settings, state.step
        reward, averages = rewards(
            settings.credit, batch, state.averages, self.episodes.reference.problem
        )
        if settings.discount > 0:
            reward = at_the_end(reward, batch, settings.credit.scheme)
        newest = Memory(
            self.start.normalise(batch.x),
            batch.question,
            batch.action.astype(np.int64),
            reward.astype(np.float32),
            batch.last,
        )
        newest = newest.select(self._kept(newest, step))
        memory = state.memory.with_newer(newest, settings.capacity)
        state = replace(state, step=step + 1, averages=averages, memory=memory)
        if len(memory) == 0:
            return state, {"relative_change_pct": 0.0}
        generator = np.random.default_rng([self.seed, 8, step])
        optimiser, target, value = state.optimiser, state.target, 0.0
        sides = self._sides(memory)
        for _ in range(settings.gradient_steps):
            chosen = _drawn_from_each(sides, settings.minibatch, generator)
            part, goal = memory.select(chosen), torch.from_numpy(self._goals(state, chosen))

            def loss(net: "Network", part: Memory = part, goal: "Tensor" = goal) -> "Tensor":
                return torch.nn.functional.mse_loss(_values_of_actions(net, part), goal)

            optimiser, value = descend(self.start, optimiser, loss, settings.learning_rate)
            slow = min(settings.average, (1 + optimiser.updates) / (10 + optimiser.updates))
            target = slow * target + (1 - slow) * optimiser.parameters
        return replace(state, optimiser=optimiser, target=target), {
            "relative_change_pct": 100 * batch.relative_change,
            "reward": float(reward.mean()) if len(reward) else 0.0,
            "acted_pct": batch.acted_pct,
            "loss": value,
            "remembered": float(len(memory)),
            "decisions": float(len(batch)),
        }

    def policy(self, state: DqnState) -> MlpPolicy:
        """Return the target's greedy policy, which acts where that is better by the caution."""
        policy = policy_of(self.start, state.target)
        last = policy.layers[-1]
        if len(last.bias) == 1:
            return policy
        cautious = last.bias + np.array([self.settings.caution, 0], dtype=np.float32)
        return replace(policy, layers=(*policy.layers[:-1], Layer(last.weight, cautious)))

    def _sides(self, memory: Memory) -> list[I64]:
        """Return the questions from which a minibatch draws alike: by action under a threshold."""
        if self.start.rule != THRESHOLD:
            return [np.arange(len(memory))]
        sides = (np.flatnonzero(memory.action != 0), np.flatnonzero(memory.action == 0))
        return [side for side in sides if len(side)]

    def _kept(self, newest: Memory, step: int) -> I64:
        """Return which questions of an update's batch to remember, in their order."""
        if self.settings.discount > 0 or self.start.rule != THRESHOLD:
            return np.arange(len(newest))  # under a discount each needs its successor
        generator = np.random.default_rng([self.seed, 12, step])
        sides = [np.flatnonzero(newest.action != 0), np.flatnonzero(newest.action == 0)]
        most = max(min(map(len, sides)), self.settings.minibatch)
        return np.sort(np.concatenate([generator.permutation(side)[:most] for side in sides]))

    def _goals(self, state: DqnState, chosen: I64) -> F32:
        """Return what the values of these questions' actions should be, ``[chosen]``."""
        memory, discount = state.memory, self.settings.discount
        if discount == 0:
            return memory.reward[chosen]
        after = memory.select((chosen + 1) % len(memory))
        best = _best_values(network.to_torch(policy_of(self.start, state.target)), after)
        ahead = np.where(memory.last[chosen], 0.0, discount * best)
        return (memory.reward[chosen] + ahead).astype(np.float32)


def _drawn_from_each(sides: Sequence[I64], count: int, generator: np.random.Generator) -> I64:
    """Return ``count`` questions, drawn alike from each of ``sides``."""
    parts = np.array_split(np.arange(count), len(sides))
    drawn = [
        side[generator.integers(len(side), size=len(part))]
        for side, part in zip(sides, parts, strict=True)
    ]
    return np.concatenate(drawn)


def _outputs(net: "Network", memory: Memory) -> "Tensor":
    """Return the network's outputs, ``[rows, 1 or 2]``."""
    import torch

    z = torch.from_numpy(memory.z)
    for k, layer in enumerate(net.layers):
        z = layer(z if k == 0 else torch.relu(z))
    return z


def _values_of_actions(net: "Network", memory: Memory) -> "Tensor":
    """Return the value of each question's action, ``[questions]``."""
    import torch

    outputs, action = _outputs(net, memory), torch.from_numpy(memory.action)
    if outputs.shape[1] == 2:
        return outputs.gather(1, action[:, None])[:, 0]
    return outputs[torch.from_numpy(first_rows(memory.question)) + action, 0]


def _best_values(net: "Network", memory: Memory) -> F32:
    """Return the greatest value of each question's actions, ``[questions]``."""
    import torch

    with torch.no_grad():
        best = _outputs(net, memory).max(dim=1).values.numpy()
    return np.asarray(np.maximum.reduceat(best, first_rows(memory.question)))


def epsilon_greedy(policy: MlpPolicy, epsilon: float) -> MlpPolicy:
    """Return the network that, sampled, gives a random answer with probability ``epsilon``.

    Its logit is that of ``policy``, made steep and cut at ±c: relu(m + c) − relu(m − c) − c, where
    sigmoid(c) = 1 − epsilon / 2. For the rule ``threshold`` only.
    """
    last = policy.layers[-1]
    weight, bias = last.weight, last.bias
    if len(bias) == 2:
        weight, bias = weight[1:] - weight[:1], bias[1:] - bias[:1]
    cut = np.float32(np.log((1 - epsilon / 2) / (epsilon / 2)))
    steep = Layer(
        np.concatenate([_STEEP * weight, _STEEP * weight]),
        np.concatenate([_STEEP * bias + cut, _STEEP * bias - cut]),
    )
    sum_ = Layer(np.array([[1, -1]], dtype=np.float32), np.array([-cut]))
    return replace(policy, layers=(*policy.layers[:-1], steep, sum_))


def _scaled(policy: MlpPolicy, factor: float) -> MlpPolicy:
    """Return the policy with its outputs times ``factor``: log odds become units of reward."""
    last, scale = policy.layers[-1], np.float32(factor)
    outputs = Layer(scale * last.weight, scale * last.bias)
    return replace(policy, layers=(*policy.layers[:-1], outputs))


def set_up(settings: DqnSettings, setup: Setup) -> Ready:
    """Make the learner ready to run.

    :raises NestorError: if random answers are wanted under a rule that has no such network.
    """
    if settings.explore == "epsilon" and setup.problem.rule == PICK:
        raise NestorError("Random answers are for the rule threshold: leave out --dqn.explore.")
    episodes = setup.episodes(setup.problem.features.unit)
    start = first_policy(setup, episodes.reference, settings.start)
    if setup.problem.rule == THRESHOLD:
        start = with_two_outputs(start)
    if setup.init is None and settings.explore == "softmax":
        start = _scaled(start, settings.temperature)
    return Ready(Dqn(settings, setup.seed, start, episodes), "Q-learning", start.features)
