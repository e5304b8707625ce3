"""The contract of a learner."""

from collections.abc import Mapping
from typing import Protocol, TypeVar

from nestor.policy.spec import Policy

Metrics = Mapping[str, float]
"""Numbers that one update reports, by the name of their curve."""

State = TypeVar("State")
Batch = TypeVar("Batch")


class Learner(Protocol[State, Batch]):
    """An algorithm that improves a policy step by step.

    A learner is a frozen dataclass of settings with pure ``init`` and ``update``: the same
    settings, seed and batches give the same bytes. A state is a frozen dataclass of NumPy arrays
    and numbers with a field ``step``, so that :mod:`nestor.learn.checkpoint` can keep it; what is
    random is drawn from (seed, step), never from hidden state. So a run that is killed and
    resumed ends with the same bytes as one that is not.
    """

    @property
    def steps(self) -> int:
        """How many updates make a run."""

    def init(self) -> State:
        """Return the state before the first update; may compile."""

    def batch(self, state: State) -> Batch:
        """Return what the next update learns from; may compile."""

    def update(self, state: State, batch: Batch) -> tuple[State, Metrics]:
        """Return the next state and what to plot; never compiles."""

    def policy(self, state: State) -> Policy:
        """Return the policy that ``state`` stands for."""
