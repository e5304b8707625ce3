"""Imitation of the best of several policies, with exploration (BC-Max).

Every unit is compiled under several policies, the learner's own among them, also sampled; the
trajectory of the one with the best score is cloned (Marinov et al., "Offline imitation learning
from multiple baselines with applications to compiler optimization", NeurIPS 2024 workshop). No
gradient goes through a reward, so nothing has to be put down to single decisions.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from nestor.learn.answers import default_actions
from nestor.learn.batch import Batch, rows_of
from nestor.learn.episodes import Episodes
from nestor.learn.gradient.descent import begin, descend, policy_of
from nestor.learn.gradient.imitation import imitation_loss
from nestor.learn.gradient.optimiser import OptimiserState
from nestor.learn.learner import Metrics
from nestor.learn.setup import Ready, Setup
from nestor.learn.start import StartSettings, first_policy
from nestor.policy.network import MlpPolicy
from nestor.policy.rule import VALUE, Actions
from nestor.policy.spec import Policy

if TYPE_CHECKING:
    from torch import Tensor

    from nestor.policy.network import Network

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
    """Units compiled for an update, each under every policy."""
    policies: tuple[str, ...] | None = None
    """Whom to imitate besides stock and the learner's own policy: policy files and built-ins
    (default: those that the problem names)."""
    samples: int = 3
    """Times that the learner's own policy is sampled; it also plays greedily."""
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
    optimiser: OptimiserState
    best: F64
    """Each unit's best score, ``[units]``; stock's at first."""
    seen: Bools
    """Which units have been compiled, ``[units]``."""
    z: F32
    """Normalised features of the best trajectories that are not stock's, ``[rows, inputs]``."""
    question: I64
    """The question of each of these rows, ``[rows]``."""
    action: Actions
    """Their actions, ``[questions]``."""
    unit: I64
    """Their units, ``[questions]``."""


@dataclass(frozen=True)
class BestOf:
    """The learner. See :class:`nestor.learn.learner.Learner`."""

    settings: BestOfSettings
    seed: int
    start: MlpPolicy
    episodes: Episodes
    others: tuple[Policy, ...] = field(repr=False)
    """Whom to imitate besides."""

    @property
    def steps(self) -> int:
        """How many updates make a run."""
        return self.settings.steps

    def init(self) -> BestOfState:
        """Begin at the initial policy; stock's trajectories are the best ones so far."""
        totals, inputs = self.episodes.reference.totals, self.start.widths[0]
        return BestOfState(
            step=0,
            optimiser=begin(self.start),
            best=totals,
            seen=np.zeros(len(totals), dtype=np.bool_),
            z=np.empty((0, inputs), dtype=np.float32),
            question=np.empty(0, dtype=np.int64),
            action=np.empty(0, np.float64 if self.start.rule == VALUE else np.int64),
            unit=np.empty(0, dtype=np.int64),
        )

    def batch(self, state: BestOfState) -> tuple[Batch, ...]:
        """Compile the next units under every policy: samples of the own one, it, the others."""
        units = self.episodes.drawn(self.seed, state.step, self.settings.modules)
        own = self.policy(state)
        sampled = [
            self.episodes.sampled(own, units, self.seed, state.step, number)
            for number in range(self.settings.samples)
        ]
        greedy = [self.episodes.greedy(policy, units, like=own) for policy in (own, *self.others)]
        return (*sampled, *greedy)

    def update(self, state: BestOfState, batch: Sequence[Batch]) -> tuple[BestOfState, Metrics]:
        """Keep the trajectories that are better than those before, and clone."""
        import torch

        settings, rule, after = self.settings, self.start.rule, state
        for plays in batch:
            after = self._with_better(after, plays)
        optimiser, value = state.optimiser, 0.0
        z, question, action, weights = self._examples(after)
        generator = np.random.default_rng([self.seed, 9, state.step])
        for _ in range(settings.gradient_steps if len(action) else 0):
            chosen = generator.choice(len(action), size=settings.minibatch, p=weights)
            rows, places = rows_of(question, chosen)
            inputs, questions = torch.from_numpy(z[rows]), torch.from_numpy(places)
            actions = torch.from_numpy(action[chosen])

            def loss(
                net: "Network",
                inputs: "Tensor" = inputs,
                questions: "Tensor" = questions,
                actions: "Tensor" = actions,
            ) -> "Tensor":
                return imitation_loss(rule, net(inputs), questions, actions, settings.smoothing)

            optimiser, value = descend(self.start, optimiser, loss, settings.learning_rate)
        own = batch[settings.samples]
        totals, seen = self.episodes.reference.totals, after.seen
        best = float(after.best[seen].sum() / totals[seen].sum() - 1) if seen.any() else 0.0
        return replace(after, step=state.step + 1, optimiser=optimiser), {
            "relative_change_pct": 100 * own.relative_change,
            "best_change_pct": 100 * best,
            "improved_units": float((after.best < totals).sum()),
            "loss": value,
        }

    def policy(self, state: BestOfState) -> MlpPolicy:
        """Return the clone."""
        return policy_of(self.start, state.optimiser.parameters)

    def _with_better(self, state: BestOfState, plays: Batch) -> BestOfState:
        """Return the state with those of the episodes that gave their unit a better score."""
        seen, best = state.seen.copy(), state.best.copy()
        seen[plays.unit] = True
        better = plays.total < best[plays.unit]
        best[plays.unit[better]] = plays.total[better]
        kept = np.flatnonzero(~np.isin(state.unit, plays.unit[better]))
        newer = np.flatnonzero(better[plays.episode])
        rows, question = rows_of(state.question, kept)
        newer_rows, newer_question = rows_of(plays.question, newer)
        return replace(
            state,
            best=best,
            seen=seen,
            z=np.concatenate([state.z[rows], self.start.normalise(plays.x[newer_rows])]),
            question=np.concatenate([question, len(kept) + newer_question]),
            action=np.concatenate([state.action[kept], plays.action[newer]]),
            unit=np.concatenate([state.unit[kept], plays.unit[plays.episode][newer]]),
        )

    def _examples(self, state: BestOfState) -> tuple[F32, I64, Actions, F64]:
        """Return what to clone: the best trajectory of every unit seen.

        :return: normalised features ``[rows, inputs]``, the question of each row, the actions
            ``[questions]`` and the probability to draw each question.
        """
        stocks = self.episodes.reference.stocks
        z, question, action, owner = [state.z], [state.question], [state.action], [state.unit]
        count = len(state.action)
        for unit in np.flatnonzero(state.seen):
            if state.best[unit] < stocks[unit].total:
                continue  # another trajectory than stock's is the best
            log = stocks[unit].trajectory
            actions = default_actions(self.start.rule, log)
            if self.start.metadata.answers == "deviation":
                actions = np.zeros_like(actions)
            z.append(self.start.normalise(log.rows(self.start.features)))
            question.append(count + log.questions)
            action.append(actions)
            owner.append(np.full(len(log), unit))
            count += len(log)
        units = np.concatenate(owner)
        # A long trajectory counts more than a short one, but not in proportion.
        weight = 1 / np.sqrt(np.bincount(units)[units])
        probability = weight / weight.sum()
        return np.concatenate(z), np.concatenate(question), np.concatenate(action), probability


def set_up(settings: BestOfSettings, setup: Setup) -> Ready:
    """Make the learner ready to run."""
    episodes = setup.episodes(setup.problem.features.unit)
    start = first_policy(setup, episodes.reference, settings.start)
    names = setup.problem.imitated if settings.policies is None else settings.policies
    named = [setup.problem.policy(name).policy for name in names]
    others = tuple(policy for policy in named if policy is not None)  # stock's are there already
    return Ready(
        BestOf(settings, setup.seed, start, episodes, others), "Imitating the best", start.features
    )
