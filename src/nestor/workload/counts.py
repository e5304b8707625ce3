"""What a run executed: instructions, reads and writes of memory, in total and by function."""

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from functools import reduce
from typing import Any, Final, TypeVar

J: Final = "J"
"""The column that is compared: instructions + reads + writes of the run."""
RUN_COLUMNS: Final = (J, "instructions", "reads", "writes")
"""What is counted in a run, as tables name it."""


@dataclass(frozen=True)
class Counts:
    """Events of a run, or of a part of it."""

    instructions: int = 0
    reads: int = 0
    """Instructions that read memory."""
    writes: int = 0
    """Instructions that write memory; one that does both counts here alone."""

    @property
    def total(self) -> int:
        """J, by which an allocation is judged: instructions + reads + writes."""
        return self.instructions + self.reads + self.writes

    def __add__(self, other: "Counts") -> "Counts":
        """Return the sums."""
        return Counts(
            self.instructions + other.instructions,
            self.reads + other.reads,
            self.writes + other.writes,
        )


@dataclass(frozen=True)
class FunctionCounts:
    """What one function executed itself, without those that it calls, and its entries."""

    counts: Counts
    calls: int

    def __add__(self, other: "FunctionCounts") -> "FunctionCounts":
        """Return the sums."""
        return FunctionCounts(self.counts + other.counts, self.calls + other.calls)


@dataclass(frozen=True)
class Measurement:
    """One run of a program under callgrind."""

    counts: Counts
    """Of the whole process, its libraries and its start included."""
    functions: Mapping[str, FunctionCounts]
    """The program's own functions, by symbol; static functions of one name are added up."""
    libraries: Mapping[str, Counts]
    """Shared libraries and the dynamic linker, by file name."""
    edges: Mapping[str, Mapping[str, int]]
    """How often each of the program's own functions called each other one, or one of a library, by
    the calling and the called function; only calls that are left in the binary."""
    left: str
    """SHA-256 of what the run printed and left (:class:`nestor.workload.running.Run`)."""
    entered: Mapping[str, FunctionCounts] = field(default_factory=dict)
    """Functions of libraries that the program's own functions called, by symbol: those of the C
    library, and instances of C++ templates for instance."""

    @property
    def own(self) -> Counts:
        """The part of the program's own functions."""
        return sum((function.counts for function in self.functions.values()), Counts())

    def to_json(self) -> dict[str, Any]:
        """Return plain data, from which :meth:`from_json` makes an equal measurement."""
        return asdict(self)

    @staticmethod
    def from_json(data: Mapping[str, Any]) -> "Measurement":
        """Return the measurement that :meth:`to_json` wrote.

        :raises KeyError, TypeError: if ``data`` is no such measurement.
        """
        return Measurement(
            Counts(**data["counts"]),
            _functions(data["functions"]),
            {name: Counts(**counts) for name, counts in data["libraries"].items()},
            {
                caller: {called: int(calls) for called, calls in own.items()}
                for caller, own in data["edges"].items()
            },
            str(data["left"]),
            _functions(data["entered"]),
        )


def _functions(data: Mapping[str, Any]) -> dict[str, FunctionCounts]:
    return {
        name: FunctionCounts(Counts(**function["counts"]), int(function["calls"]))
        for name, function in data.items()
    }


def sum_of(runs: Iterable[Measurement]) -> Measurement:
    """Return what several runs executed together, and the digest of all that they left."""
    return reduce(_add, runs)


def _add(one: Measurement, other: Measurement) -> Measurement:
    callers = {**one.edges, **other.edges}
    return Measurement(
        one.counts + other.counts,
        _sum(one.functions, other.functions),
        _sum(one.libraries, other.libraries),
        {name: _sum(one.edges.get(name, {}), other.edges.get(name, {})) for name in callers},
        hashlib.sha256(f"{one.left} {other.left}".encode()).hexdigest(),
        _sum(one.entered, other.entered),
    )


_Number = TypeVar("_Number", Counts, FunctionCounts, int)


def _sum(one: Mapping[str, _Number], other: Mapping[str, _Number]) -> dict[str, _Number]:
    """Return the sums by name."""
    return {**one, **{name: one[name] + n if name in one else n for name, n in other.items()}}
