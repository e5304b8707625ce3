"""What a search depends on from step to step, and what it has found out about moves."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from nestor.build.calls import Calls
from nestor.build.incremental import ProgramBuild
from nestor.problem.overrides import Overrides


@dataclass(frozen=True)
class Tried:
    """What is known of one move."""

    context: int
    """Of the candidate when it was tried (:attr:`nestor.tune.moves.Candidate.context`)."""
    times: int
    """How often it was tried in this context."""
    change: float | None
    """Of the score; None if it could not be told apart from that of other moves, or if a build
    with the move turned out not to save what was put down to it."""
    total: float | None = None
    """What the functions came to of which it decides as a whole; None of other moves."""
    amount: float | None = None
    """The change of a column that has a limit; None where none has."""

    def to_json(self) -> list[Any]:
        """Return plain data."""
        return [self.context, self.times, self.change, self.total, self.amount]

    @staticmethod
    def from_json(data: list[Any]) -> "Tried":
        """Return what ``data`` is :meth:`to_json` of."""
        context, times, *bytes_ = data
        change, total, amount = (None if one is None else float(one) for one in bytes_)
        return Tried(int(context), int(times), change, total, amount)


@dataclass(frozen=True)
class Point:
    """The best verified build after so many whole-program compiles."""

    compiles: float
    total: float
    """The score, the mean over the modes."""
    others: Mapping[str, float] = field(default_factory=dict)
    """The program's other columns, likewise."""

    @staticmethod
    def of(compiles: float, build: ProgramBuild) -> "Point":
        """Return where ``build`` stands after so many compiles."""
        first = next(iter(build.columns.values()))
        others = {name: build.mean(name) for name in first if name != build.score}
        return Point(compiles, build.total, others)

    def to_json(self) -> dict[str, float]:
        """Return the point as plain data."""
        return {"compiles": self.compiles, "total": self.total, **self.others}

    @staticmethod
    def from_json(data: Mapping[str, Any]) -> "Point":
        """Return the point of which ``data`` is :meth:`to_json`."""
        others = {name: float(v) for name, v in data.items() if name not in ("compiles", "total")}
        return Point(float(data["compiles"]), float(data["total"]), others)


@dataclass(frozen=True)
class State:
    """Everything that the next step depends on."""

    step: int = 0
    overrides: Overrides = field(default_factory=dict)
    tried: Mapping[int, Tried] = field(default_factory=dict)
    """By the move's identity."""
    curve: tuple[Point, ...] = ()
    exhausted: bool = False
    """Whether there was nothing left to try."""
    written: Calls | None = None
    """See :attr:`nestor.tune.moves.Evidence.written`."""
