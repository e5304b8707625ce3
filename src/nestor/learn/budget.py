"""What a run may spend: compiles, or CPU minutes by a price list.

A learner compares with another one only at equal cost, and a run that is interrupted must end
where the uninterrupted one ends. Measured CPU time gives the first and not the second. So a
compile costs what the stock compile of its unit took when the reference was recorded
(:mod:`nestor.learn.reference`), whatever it takes now; what it really took is shown beside it.
"""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

from nestor.errors import NestorError
from nestor.files import read_regular, write_atomically
from nestor.learn.accounting import Tally
from nestor.learn.learner import Learner, Metrics
from nestor.policy.spec import Policy

State = TypeVar("State", bound=Any)
Batch = TypeVar("Batch")


@dataclass(frozen=True)
class Budget:
    """What ends a run, if the learner's own ``steps`` do not end it before."""

    cpu_minutes: float | None = None
    """CPU minutes of compilers and linkers, by the price list of the reference (not where only
    whole programs have a score)."""
    compiles: int | None = None
    """Compiles of single units."""

    def __post_init__(self) -> None:
        if self.cpu_minutes is not None and self.compiles is not None:
            raise NestorError("A budget is in CPU minutes or in compiles: give one of them.")
        limits = (self.cpu_minutes, self.compiles)
        if any(limit is not None and not 0 < limit < math.inf for limit in limits):
            raise NestorError("A budget must be above 0, and finite.")

    @property
    def unit(self) -> str:
        """What the budget counts; empty if there is none."""
        if self.cpu_minutes is not None:
            return "cpu_minutes"
        return "compiles" if self.compiles is not None else ""

    @property
    def units(self) -> int | None:
        """The budget as a count: compiles, or milliseconds of CPU; None if there is none."""
        if self.cpu_minutes is not None:
            return max(1, round(60_000 * self.cpu_minutes))
        return self.compiles


@dataclass(frozen=True)
class Spent:
    """What was spent so far."""

    compiles: int = 0
    microseconds: int = 0
    """CPU time by the price list."""

    @staticmethod
    def of(tally: Tally) -> "Spent":
        """Return what ``tally`` has counted."""
        return Spent(tally.rollouts, tally.microseconds)

    def __add__(self, other: "Spent") -> "Spent":
        return Spent(self.compiles + other.compiles, self.microseconds + other.microseconds)

    def __sub__(self, other: "Spent") -> "Spent":
        return Spent(self.compiles - other.compiles, self.microseconds - other.microseconds)


@dataclass(frozen=True)
class BudgetedState(Generic[State]):
    """A learner's state and what it has cost."""

    step: int
    """Units of the budget spent, or updates where there is no budget."""
    spent: Spent
    learner: State


@dataclass(frozen=True)
class Charged(Generic[Batch]):
    """A batch and what it cost."""

    batch: Batch
    cost: Spent


@dataclass(frozen=True)
class Budgeted(Generic[State, Batch]):
    """A learner within a budget: itself a learner, whose steps are units of the budget.

    The run ends where it comes closest to the budget: a batch of which more than half would go
    beyond is not begun, judged by the batch before.
    """

    learner: Learner[State, Batch]
    budget: Budget
    tally: Tally

    @property
    def steps(self) -> int:
        """Units of the budget, or the learner's own steps."""
        return self.budget.units or self.learner.steps

    def init(self) -> BudgetedState[State]:
        """Return the learner's first state; what it compiles is charged."""
        before = Spent.of(self.tally)
        state = self.learner.init()
        cost = Spent.of(self.tally) - before
        return BudgetedState(self._step(cost, Spent(), state.step), cost, state)

    def batch(self, state: BudgetedState[State]) -> Charged[Batch]:
        """Return the learner's batch, and what it cost."""
        before = Spent.of(self.tally)
        batch = self.learner.batch(state.learner)
        return Charged(batch, Spent.of(self.tally) - before)

    def update(
        self, state: BudgetedState[State], batch: Charged[Batch]
    ) -> tuple[BudgetedState[State], Metrics]:
        """Update the learner and count."""
        learner, metrics = self.learner.update(state.learner, batch.batch)
        spent = state.spent + batch.cost
        counted = {
            "spent/updates": float(learner.step),
            "spent/compiles": float(spent.compiles),
            "spent/cpu_minutes": spent.microseconds / 60e6,
        }
        step = self._step(spent, batch.cost, learner.step)
        return BudgetedState(step, spent, learner), {**metrics, **counted}

    def policy(self, state: BudgetedState[State]) -> Policy:
        """Return the learner's policy."""
        return self.learner.policy(state.learner)

    def _step(self, spent: Spent, next_cost: Spent, updates: int) -> int:
        units = self.budget.units
        if units is None:
            return updates
        by_time = self.budget.cpu_minutes is not None
        used = spent.microseconds / 1000 if by_time else spent.compiles
        ahead = next_cost.microseconds / 1000 if by_time else next_cost.compiles
        if updates >= self.learner.steps or used + ahead / 2 >= units:
            return units
        return min(units - 1, int(used))


def price_list(folder: Path, prices: Mapping[str, float]) -> dict[str, float]:
    """Return the prices of the run in ``folder``; a new run keeps ``prices`` there.

    :raises NestorError: if the file cannot be read or written.
    """
    path = folder / "prices.json"
    try:
        if path.exists():
            content = json.loads(read_regular(path, "a run's prices"))
            return {str(name): float(price) for name, price in content.items()}
        write_atomically(path, json.dumps(dict(prices)))
    except (OSError, ValueError, AttributeError, TypeError) as error:
        raise NestorError(f"{path} cannot be used ({error}); take another --out.") from None
    return dict(prices)
