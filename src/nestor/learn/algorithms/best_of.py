"""Imitation of the best of several policies, with exploration (BC-Max).

Every module is compiled under several policies, the learner's own among them, also sampled; the
trajectory of the one that made it smallest is cloned (Marinov et al., "Offline imitation learning
from multiple baselines with applications to compiler optimization", NeurIPS 2024 workshop). No
gradient goes through a reward, so nothing has to be put down to single decisions.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from nestor.learn.batch import Batch
from nestor.learn.episodic import Episodic
from nestor.learn.features import MODULE_FEATURES
from nestor.learn.gradient import Walk, descend
from nestor.learn.learner import Metrics
from nestor.learn.setup import Ready, Setup
from nestor.learn.start import StartSettings
from nestor.policy import builtin
from nestor.policy.network import MlpPolicy
from nestor.policy.spec import Policy

F32 = npt.NDArray[np.float32]
F64 = npt.NDArray[np.float64]
I64 = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class BestOfSettings:
    """Whom to imitate, and how."""

    steps: int = 1000
    """Updates, at most."""
    modules: int = 8
    """Modules compiled for an update, each under every policy."""
    policies: tuple[str, ...] = ("threshold:0", "threshold:15", "threshold:25")
    """Whom to imitate besides stock and oneself: policy files and built-ins."""
    samples: int = 3
    """Times that one's own policy is sampled; it also plays greedily."""
    gradient_steps: int = 60
    """Per update."""
    minibatch: int = 512
    """Decisions per gradient step."""
    learning_rate: float = 1e-3
    """Adam's step size."""
    smoothing: float = 0.02
    """Labels are this far from 0 and 1: it is what keeps the clone exploring."""
    start: StartSettings = field(default_factory=StartSettings)
    """Where to start."""


@dataclass(frozen=True)
class BestOfState:
    """The clone and the best trajectories so far."""

    step: int
    walk: Walk
    best: F64
    """Each module's least bytes, ``[modules]``; stock's at first."""
    seen: Bools
    """Which modules have been compiled."""
    z: F32
    """Normalised features of the best trajectories that are not stock's, ``[n, inputs]``."""
    positive: Bools
    """Their actions."""
    module: I64
    """Their modules."""


@dataclass(frozen=True)
class BestOf(Episodic[BestOfSettings]):
    """The learner. See :class:`nestor.learn.learner.Learner`."""

    others: tuple[Policy, ...] = field(repr=False)

    def init(self) -> BestOfState:
        """Begin at the initial policy; stock's trajectories are the best ones known."""
        modules, inputs = len(self.episodes.reference.stocks), self.start.widths[0]
        return BestOfState(
            step=0,
            walk=Walk.begin(self.start),
            best=self.episodes.reference.totals,
            seen=np.zeros(modules, dtype=np.bool_),
            z=np.zeros((0, inputs), dtype=np.float32),
            positive=np.zeros(0, dtype=np.bool_),
            module=np.zeros(0, dtype=np.int64),
        )

    def batch(self, state: BestOfState) -> tuple[Batch, ...]:
        """Compile the next modules under everybody."""
        modules = self.drawn(state)
        mine = self.policy(state)
        sampled = [
            self.episodes.sampled(mine, modules, self.seed, state.step, number)
            for number in range(self.settings.samples)
        ]
        greedy = [
            self.episodes.greedy(policy, modules, like=mine) for policy in (mine, *self.others)
        ]
        return (*sampled, *greedy)

    def update(self, state: BestOfState, batch: Sequence[Batch]) -> tuple[BestOfState, Metrics]:
        """Keep the trajectories that are better than those known, and clone."""
        after = state
        for plays in batch:
            after = self._with_better(after, plays)
        walk, value = state.walk, 0.0
        z, labels, weights = self._examples(after)
        generator = np.random.default_rng([self.seed, 9, state.step])
        if len(z):
            for _ in range(self.settings.gradient_steps):
                rows = generator.choice(len(z), size=self.settings.minibatch, p=weights)
                walk, value = self._clone(walk, z[rows], labels[rows])
        own = batch[self.settings.samples]
        totals = self.episodes.reference.totals
        return replace(after, step=state.step + 1, walk=walk), {
            "relative_change_pct": 100 * own.relative_change,
            "best_change_pct": 100
            * float(after.best[after.seen].sum() / totals[after.seen].sum() - 1)
            if after.seen.any()
            else 0.0,
            "improved_modules": float((after.best < totals).sum()),
            "loss": value,
        }

    def policy(self, state: BestOfState) -> MlpPolicy:
        """Return the clone."""
        return state.walk.policy(self.start)

    def _with_better(self, state: BestOfState, plays: Batch) -> BestOfState:
        """Return the state with those of the episodes that made their module smaller."""
        seen, best = state.seen.copy(), state.best.copy()
        seen[plays.module] = True
        better = plays.total < best[plays.module]
        best[plays.module[better]] = plays.total[better]
        kept = ~np.isin(state.module, plays.module[better])
        rows = better[plays.episode]
        x, positive = plays.x[rows], plays.positive[rows]
        return replace(
            state,
            best=best,
            seen=seen,
            z=np.concatenate([state.z[kept], self.start.normalise(x)]),
            positive=np.concatenate([state.positive[kept], positive]),
            module=np.concatenate([state.module[kept], plays.module[plays.episode][rows]]),
        )

    def _examples(self, state: BestOfState) -> tuple[F32, Bools, F64]:
        """Return what to clone: the best trajectory of every module seen, equally often."""
        stocks = self.episodes.reference.stocks
        own = [m for m in np.flatnonzero(state.seen) if state.best[m] >= stocks[m].total]
        z = [state.z]
        labels, owners = [state.positive], [state.module]
        deviates = self.start.metadata.answers == "deviation"
        for module in own:
            stock = stocks[module]
            z.append(self.start.normalise(stock.trajectory.matrix(self.start.features)))
            labels.append(np.zeros_like(stock.default) if deviates else stock.default)
            owners.append(np.full(len(stock.default), module))
        owner = np.concatenate(owners)
        size = np.maximum(1, np.bincount(owner, minlength=len(stocks)))
        # A long trajectory counts more than a short one, but not in proportion.
        weight = 1 / np.sqrt(size[owner])
        return np.concatenate(z), np.concatenate(labels), weight / max(weight.sum(), 1e-30)

    def _clone(self, walk: Walk, z: F32, positive: Bools) -> tuple[Walk, float]:
        import torch

        smoothing = self.settings.smoothing
        inputs = torch.from_numpy(z)
        labels = torch.from_numpy(positive.astype(np.float32)) * (1 - 2 * smoothing) + smoothing

        def loss(net: "torch.nn.Module") -> "torch.Tensor":
            return torch.nn.functional.binary_cross_entropy_with_logits(net(inputs), labels)

        return descend(self.start, walk, loss, self.settings.learning_rate)


def set_up(settings: BestOfSettings, setup: Setup) -> Ready:
    """Make the learner ready to run."""
    episodes = setup.episodes(MODULE_FEATURES)
    start = setup.start(settings.start, episodes)
    named = [builtin.resolve(name) for name in settings.policies]
    others = tuple(policy for policy in named if policy is not None)  # stock is known already
    return Ready(
        BestOf(settings, setup.seed, start, episodes, others), "Imitating the best", start.features
    )
