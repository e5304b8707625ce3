"""What a compile is scored by, and what of its score is put down to each decision."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from nestor.problem.trajectory import F64


@dataclass(frozen=True)
class Report:
    """The columns of what a program comes to, as tables and JSON name them."""

    score: str
    """The column that is compared; lower is better."""
    columns: tuple[str, ...]
    """All of them, the score among them."""
    unit: str = "bytes"
    quantity: str = "bytes"
    """What is counted, for titles: the unit and what it is of."""
    mode: str = "link mode"
    """What a mode of its builds is, for titles; empty where there is but one."""
    decimals: int = 0
    detail: tuple[str, ...] = ()
    """Columns that stand beside the score where programs are summed up."""
    least: float = 0.0
    """The score of a stock program from which on it counts in a mean over programs."""
    limits: tuple[tuple[str, float], ...] = ()
    """Columns that no result of a search may raise above this multiple of stock's."""
    unit_part: float | None = None
    """The part of a stock program's score to which a search counts savings, as a byte is where
    sizes are searched; None where the score is in bytes."""
    remarks: tuple["Remark", ...] = ()
    """What an evaluation says of units besides."""


@dataclass(frozen=True)
class Remark:
    """A fact of trajectories; an evaluation counts and lists the units that have it."""

    fact: str
    """Its name in :attr:`Trajectory.facts`; a unit has it if it is not 0."""
    key: str
    """Its name in the JSON of an evaluation."""
    words: str
    """What is said of such units, after their number."""


class Scorer(Protocol):
    """Scores the compiles of one unit: how much of each outcome counts in the unit's programs."""

    def parts(self, outcome: Any) -> Mapping[str, float]:
        """Return the score of each part (function) of the unit by its name; lower is better."""

    def total(self, outcome: Any) -> float:
        """Return the score of the whole unit; lower is better."""

    def to_json(self) -> dict[str, Any]:
        """Return plain data from which ``Problem.scorer`` makes the scorer again."""


@dataclass(frozen=True)
class Scorers:
    """The scorers of some units, and what it cost to make them."""

    units: Mapping[str, Scorer]
    """By the unit's name; a unit that no program shows is absent."""
    link_seconds: Mapping[str, float] = field(default_factory=dict)
    """CPU seconds of one link by program: a part of the price list of budgets."""
    failures: tuple[str, ...] = ()
    """What could not be linked, with the reason."""


@dataclass(frozen=True)
class Credit:
    """What of a compile's score is put down to each of its decisions, against stock."""

    change: F64
    """Change of the parts that each decision can affect, ``[questions]``."""
    share: F64
    """Its share of that, divided among the decisions that left the default, ``[questions]``; 0
    for a decision that did not."""
