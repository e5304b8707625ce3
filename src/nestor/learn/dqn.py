"""Deep Q-learning: learn what each answer is worth, and mostly give the better one.

The value of *act* and of *do not* are the network's two outputs; their difference is the policy's
logit (Mnih et al., 2015; the RFC that brought MLGO to LLVM named it first). Decisions that were
paid are remembered and used again. With a discount of 0 a decision's value is its own credit, which
makes the learner a regression on a bandit; above 0 the next decision of the module counts too, by
the target network.

Three things differ from what was published. The loss is the squared error, not Huber's: few moves
pay, but those pay much, and an error counted by its absolute value learns the median, which never
does. Each answer's value is a regression of its own, so a minibatch is drawn half from either: one
decision in twenty leaves the default, and the rest would drown it. And the target network is the
running average of the other one (Lillicrap et al., 2016) and makes the final policy: which calls
are just worth it changes from one update to the next.

The compiler explores. Either as the values say (softmax: what is believed to cost a little is tried
more often than what costs much, and most answers that leave the default cost much); or with a
probability of ε an answer is random, as published. That is a network as well, whose logit is cut
at the logarithm of the odds (:func:`epsilon_greedy`).
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Literal

import numpy as np
import numpy.typing as npt

from nestor.errors import NestorError
from nestor.learn.batch import Batch
from nestor.learn.credit import CreditSettings, at_the_end, pay
from nestor.learn.episodic import Episodic
from nestor.learn.features import MODULE_FEATURES
from nestor.learn.gradient import Walk, descend
from nestor.learn.learner import Metrics
from nestor.learn.setup import Ready, Setup
from nestor.learn.start import StartSettings, with_two_outputs
from nestor.policy import network
from nestor.policy.network import Layer, MlpPolicy

if TYPE_CHECKING:
    import torch

F32 = npt.NDArray[np.float32]
F64 = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]
I64 = npt.NDArray[np.int64]

_STEEP = np.float32(1024)
"""A logit of more than c/1024, c the logarithm of the odds, is greedy."""


@dataclass(frozen=True)
class DqnSettings:
    """How values are learned and followed."""

    steps: int = 1000
    """Updates, at most."""
    modules: int = 32
    """Modules compiled for an update."""
    explore: Literal["softmax", "epsilon"] = "softmax"
    """How answers are drawn."""
    temperature: float = 0.3
    """Units of reward that make an answer e times less likely (softmax only)."""
    epsilon: float = 0.1
    """Part of the answers that are random (epsilon only)."""
    callees: bool = True
    """Give all sites of a callee the same draw in every second compile: a function goes away only
    if all its calls are inlined, and draws of their own would hardly ever show that."""
    discount: float = 0.0
    """What the next decision's value counts."""
    gradient_steps: int = 60
    """Per update."""
    minibatch: int = 512
    """Decisions per gradient step."""
    learning_rate: float = 1e-3
    """Adam's step size."""
    capacity: int = 300_000
    """Decisions that are remembered. Without a discount no more are kept of an update's commoner
    answer than of the other: the first updates, in which few leave the default at once and credit
    is clearest, should not be forgotten."""
    average: float = 0.999
    """What a gradient step leaves of the target network; the rest is the other one's. The first
    steps leave less."""
    caution: float = 0.3
    """By how much the value of acting must be greater in the final policy (units of reward)."""
    credit: CreditSettings = field(default_factory=CreditSettings)
    """What decisions are paid."""
    start: StartSettings = field(default_factory=lambda: StartSettings(hidden=(64, 64)))
    """Where to start; acting is believed to be as bad as makes it as likely as its ``explore``."""

    def __post_init__(self) -> None:
        if not 0 < self.epsilon < 1:
            raise NestorError("The part of random answers must be between 0 and 1.")
        if not self.temperature > 0:
            raise NestorError("The temperature must be above 0.")


@dataclass(frozen=True)
class Memory:
    """The last decisions that were paid: a ring of at most ``capacity``."""

    z: F32
    """Normalised features, ``[n, inputs]``."""
    positive: Bools
    reward: F32
    last: Bools
    """Whether the decision ended its episode; its successor is the next row else."""
    head: int
    """Where the next decision goes once the ring is full."""

    @staticmethod
    def empty(inputs: int) -> "Memory":
        """Return a memory of nothing."""
        nothing = np.zeros(0, dtype=np.float32)
        return Memory(np.zeros((0, inputs), np.float32), nothing > 0, nothing, nothing > 0, 0)

    def sides(self) -> list[I64]:
        """Return the indices of the decisions by answer; an answer never given is left out."""
        return [side for side in map(np.flatnonzero, (self.positive, ~self.positive)) if len(side)]

    def with_rows(
        self, z: F32, positive: Bools, reward: F32, last: Bools, capacity: int
    ) -> "Memory":
        """Return the memory with these decisions, the oldest forgotten."""
        new = (z[-capacity:], positive[-capacity:], reward[-capacity:], last[-capacity:])
        old = (self.z, self.positive, self.reward, self.last)
        room = min(capacity - len(self.z), len(new[0]))
        grown = [np.concatenate([a, b[:room]]) for a, b in zip(old, new, strict=True)]
        rest = [b[room:] for b in new]
        places = (self.head + np.arange(len(rest[0]))) % capacity
        for array, values in zip(grown, rest, strict=True):
            array[places] = values
        if len(grown[3]):  # what the newest row overtook is another episode's
            newest = (self.head + len(rest[0]) - 1) % len(grown[3]) if len(rest[0]) else -1
            grown[3][newest] = True
        head = (self.head + len(rest[0])) % capacity
        return Memory(grown[0], grown[1], grown[2], grown[3], head)


@dataclass(frozen=True)
class DqnState:
    """Both networks, the averages that credit is against, and the memory."""

    step: int
    walk: Walk
    target: F64
    averages: F64
    memory: Memory


@dataclass(frozen=True)
class Dqn(Episodic[DqnSettings]):
    """The learner, whose start has two outputs. See :class:`nestor.learn.learner.Learner`."""

    def init(self) -> DqnState:
        """Begin at the initial policy, with no memory."""
        walk = Walk.begin(self.start)
        memory = Memory.empty(self.start.widths[0])
        return DqnState(0, walk, walk.parameters, self.episodes.reference.totals, memory)

    def batch(self, state: DqnState) -> Batch:
        """Compile the next modules under the exploring policy."""
        modules = self.drawn(state)
        policy, temperature = state.walk.policy(self.start), self.settings.temperature
        if self.settings.explore == "softmax":
            play = partial(self.episodes.sampled, policy, temperature=temperature)
        else:
            play = partial(self.episodes.sampled, epsilon_greedy(policy, self.settings.epsilon))
        together = self.settings.callees
        return play(modules=modules, seed=self.seed, step=state.step, callees=together)

    def update(self, state: DqnState, batch: Batch) -> tuple[DqnState, Metrics]:
        """Remember the batch and fit the values to draws from the memory."""
        import torch

        settings, step = self.settings, state.step
        rewards, averages = pay(settings.credit, batch, state.averages)
        if settings.discount > 0:
            rewards = at_the_end(rewards, batch, settings.credit.scheme)
        z = self.start.normalise(batch.x)
        kept = self._kept(batch.positive, step)
        memory = state.memory.with_rows(
            z[kept],
            batch.positive[kept],
            rewards[kept].astype(np.float32),
            batch.last[kept],
            settings.capacity,
        )
        state = replace(state, step=step + 1, averages=averages, memory=memory)
        if len(memory.z) == 0:
            return state, {"relative_change_pct": 0.0}
        generator = np.random.default_rng([self.seed, 8, step])
        walk, target, value, sides = state.walk, state.target, 0.0, memory.sides()
        for _ in range(settings.gradient_steps):
            rows = _half_of_each(sides, settings.minibatch, generator)
            goal = torch.from_numpy(self._goals(state, rows))
            inputs = torch.from_numpy(memory.z[rows])
            action = torch.from_numpy(memory.positive[rows].astype(np.int64))[:, None]

            def loss(
                net: "network.Network",
                inputs: "torch.Tensor" = inputs,
                action: "torch.Tensor" = action,
                goal: "torch.Tensor" = goal,
            ) -> "torch.Tensor":
                values = _values(net, inputs).gather(1, action)[:, 0]
                return torch.nn.functional.mse_loss(values, goal)

            walk, value = descend(self.start, walk, loss, settings.learning_rate)
            slow = min(settings.average, (1 + walk.updates) / (10 + walk.updates))
            target = slow * target + (1 - slow) * walk.parameters
        return replace(state, walk=walk, target=target), {
            "relative_change_pct": 100 * batch.relative_change,
            "reward": float(rewards.mean()) if len(rewards) else 0.0,
            "positive_pct": 100 * float(batch.positive.mean()) if len(batch.x) else 0.0,
            "loss": value,
            "remembered": float(len(memory.z)),
            "decisions": float(len(batch.x)),
        }

    def policy(self, state: DqnState) -> MlpPolicy:
        """Return the target's greedy policy, which acts where that is better by the caution."""
        policy = self.start.with_parameters(state.target.astype(np.float32))
        last = policy.layers[-1]
        wary = last.bias + np.array([self.settings.caution, 0], dtype=np.float32)
        return replace(policy, layers=(*policy.layers[:-1], Layer(last.weight, wary)))

    def _kept(self, positive: Bools, step: int) -> I64:
        """Return which decisions of an update's batch to remember, in their order."""
        if self.settings.discount > 0:  # each needs its successor
            return np.arange(len(positive))
        generator = np.random.default_rng([self.seed, 12, step])
        sides = [np.flatnonzero(positive), np.flatnonzero(~positive)]
        most = max(min(map(len, sides)), self.settings.minibatch)
        return np.sort(np.concatenate([generator.permutation(side)[:most] for side in sides]))

    def _goals(self, state: DqnState, rows: npt.NDArray[np.int64]) -> F32:
        """Return what the values of these decisions should be, ``[rows]``."""
        import torch

        memory = state.memory
        if self.settings.discount == 0:
            return memory.reward[rows]
        target = network.to_torch(self.start.with_parameters(state.target.astype(np.float32)))
        after = memory.z[(rows + 1) % len(memory.z)]
        with torch.no_grad():
            best = _values(target, torch.from_numpy(after)).max(dim=1).values.numpy()
        ahead = np.where(memory.last[rows], 0.0, self.settings.discount * best)
        return (memory.reward[rows] + ahead).astype(np.float32)


def _half_of_each(sides: Sequence[I64], count: int, generator: np.random.Generator) -> I64:
    """Return ``count`` indices, drawn alike from each of ``sides``."""
    parts = np.array_split(np.arange(count), len(sides))
    drawn = [
        side[generator.integers(len(side), size=len(part))]
        for side, part in zip(sides, parts, strict=True)
    ]
    return np.concatenate(drawn)


def _values(net: "network.Network", z: "torch.Tensor") -> "torch.Tensor":
    """Return the values of not acting and acting, ``[n, 2]``."""
    import torch

    for k, layer in enumerate(net.layers):
        z = layer(z if k == 0 else torch.relu(z))
    return z


def epsilon_greedy(policy: MlpPolicy, epsilon: float) -> MlpPolicy:
    """Return the network that, sampled, gives a random answer with probability ``epsilon``.

    Its logit is that of ``policy``, made steep and cut at ±c: relu(m + c) − relu(m − c) − c, where
    sigmoid(c) = 1 − epsilon / 2.
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
    sum_ = Layer(np.array([[1, -1]], dtype=np.float32), np.array([-cut], dtype=np.float32))
    return replace(policy, layers=(*policy.layers[:-1], steep, sum_))


def _scaled(policy: MlpPolicy, factor: float) -> MlpPolicy:
    """Return the policy with its outputs times ``factor``: log odds become units of reward."""
    last, scale = policy.layers[-1], np.float32(factor)
    outputs = Layer(scale * last.weight, scale * last.bias)
    return replace(policy, layers=(*policy.layers[:-1], outputs))


def set_up(settings: DqnSettings, setup: Setup) -> Ready:
    """Make the learner ready to run."""
    episodes = setup.episodes(MODULE_FEATURES)
    start = with_two_outputs(setup.start(settings.start, episodes))
    if setup.init is None and settings.explore == "softmax":
        start = _scaled(start, settings.temperature)
    return Ready(Dqn(settings, setup.seed, start, episodes), "Q-learning", start.features)
