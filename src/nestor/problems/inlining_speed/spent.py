"""What a run costs, in all and by function: what it executes, or predicted cycles."""

import hashlib
import json
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path, PurePosixPath
from typing import Final

from nestor.compiler.cache import cache_place
from nestor.corpus.model import Program
from nestor.events.simulated.tool import ensure_tool
from nestor.events.simulated.workload import events_of
from nestor.events.table import EventTable
from nestor.files import write_atomically
from nestor.problem.problem import Pool
from nestor.program_cost import weights as fitted
from nestor.program_cost.score import CYCLES_PER_INSTRUCTION, cycles_of, usual_penalties
from nestor.workload.counts import J, Measurement
from nestor.workload.kept import run_digest

CYCLES: Final = "cycles"


@dataclass(frozen=True)
class Spent:
    """What a build's runs cost."""

    column: str
    """Its name among the columns of the program."""
    total: float
    """Libraries and the start of the process included."""
    functions: Mapping[str, float]
    """What each of the program's own functions costs itself, by symbol."""
    entered: Mapping[str, float]
    """The same of functions of libraries."""


Spend = Callable[[Pool, Program, Path, Sequence[Sequence[str]], Measurement], Spent]
"""Takes a build of a program, the arguments of its runs, and what callgrind counted in them."""


def executed(
    pool: Pool,
    program: Program,
    binary: Path,
    runs: Sequence[Sequence[str]],
    measured: Measurement,
) -> Spent:
    """Return J: instructions, reads and writes, which are counted already."""
    functions, entered = (
        {name: float(one.counts.total) for name, one in own.items()}
        for own in (measured.functions, measured.entered)
    )
    return Spent(J, measured.counts.total, functions, entered)


def predicted(
    pool: Pool,
    program: Program,
    binary: Path,
    runs: Sequence[Sequence[str]],
    measured: Measurement,
) -> Spent:
    """Return predicted cycles (:mod:`nestor.program_cost.score`), from the events of each run.

    :raises EventsError: if a run cannot be simulated.
    """
    spent = [_cycles(pool, program, binary, words) for words in runs]
    return Spent(
        CYCLES,
        sum(one.total for one in spent),
        _sums([one.functions for one in spent]),
        _sums([one.entered for one in spent]),
    )


def _cycles(pool: Pool, program: Program, binary: Path, words: Sequence[str]) -> Spent:
    """Return what one run costs; it is kept, as measurements are."""
    penalties = usual_penalties()
    weights = fitted.packaged(penalties.machine)
    depends = [
        run_digest(pool.corpus, program, binary, words), ensure_tool().folder.name,
        asdict(penalties), dict(weights.values), CYCLES_PER_INSTRUCTION,
    ]  # fmt: skip
    name = hashlib.sha256(json.dumps(depends).encode()).hexdigest()
    path = Path(cache_place()) / "cycles" / f"{name}.json"
    kept = _read(path)
    if kept is not None:
        return kept
    table = events_of(pool.corpus, program, binary, words, pool.plugin.toolchain)
    found = _by_function(table, cycles_of(table, penalties, weights).tolist(), program)
    write_atomically(path, json.dumps(asdict(found)))
    return found


def _by_function(table: EventTable, cycles: Sequence[float], program: Program) -> Spent:
    own: defaultdict[str, float] = defaultdict(float)
    others: defaultdict[str, float] = defaultdict(float)
    file = program.name.rpartition("/")[2]
    names = zip(table.words("object"), table.words("function"), cycles, strict=True)
    for place, function, cost in names:
        (own if PurePosixPath(place).name == file else others)[function] += cost
    return Spent(CYCLES, sum(cycles), dict(own), dict(others))


def _sums(parts: Sequence[Mapping[str, float]]) -> dict[str, float]:
    found: defaultdict[str, float] = defaultdict(float)
    for part in parts:
        for name, cost in part.items():
            found[name] += cost
    return dict(found)


def _read(path: Path) -> Spent | None:
    try:
        data = json.loads(path.read_bytes())
        functions, entered = (
            {str(name): float(cost) for name, cost in data[key].items()}
            for key in ("functions", "entered")
        )
        return Spent(str(data["column"]), float(data["total"]), functions, entered)
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None  # absent, or cut short by a full disk: it runs again
