"""What a compile is scored by, and what of its score is put down to each decision."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from nestor.problem.trajectory import F64


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
