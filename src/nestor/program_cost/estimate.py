"""What a run costs, in total, by function and by block, and what bounds each."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from nestor.events.errors import EventsError
from nestor.events.table import EventTable
from nestor.program_cost.quantities import QUANTITIES, Quantities
from nestor.program_cost.weights import Weights

F64 = npt.NDArray[np.float64]

BOUNDS: Final = {
    "compute": "computing",
    "recurrence": "waiting for own results",
    "taken": "jumps",
    "mispredict": "mispredicted branches",
    "l1": "first-level misses",
    "l2": "second-level misses",
    "llc": "last-level misses",
    "chased": "misses of pointers that are followed",
    "code": "code that is not in the cache",
    "tlb": "page walks",
    "rep": "repeated string instructions",
}
"""What a quantity means to a reader."""


@dataclass(frozen=True)
class Share:
    """Cycles of a part of a run."""

    function: str
    object: str
    address: int | None
    """Of a block; None of a function."""
    executions: int
    """Of a block; of a function's busiest block."""
    cycles: float
    by_quantity: dict[str, float]
    bound: str
    """The name of the largest quantity."""


@dataclass(frozen=True)
class Estimate:
    """Cycles of a run."""

    cycles: float
    low: float
    """The prediction less the mean error of programs left out; NaN where no fit says it."""
    high: float
    by_quantity: dict[str, float]
    instructions: int
    executed: float
    """J: instructions + reads + writes; NaN where the source does not count these."""
    unanswered: float
    """The share of instructions in blocks for which the block model has no answer."""


def estimate(run: Quantities, weights: Weights) -> Estimate:
    """Return what a run costs.

    :raises EventsError: if it costs nothing by these weights.
    """
    parts = run.totals() * weights.array()
    cycles = float(parts.sum())
    if not cycles > 0:
        raise EventsError("These weights leave the run no cycles; fit others, or leave them out.")
    spread = np.nan if weights.error is None else weights.error * cycles
    accesses = [run.table.total(name) for name in ("reads", "writes")]
    counted = [number for number in accesses if number is not None]
    instructions = run.table.instructions
    return Estimate(
        cycles,
        cycles - spread,
        cycles + spread,
        dict(zip(QUANTITIES, parts.tolist(), strict=True)),
        instructions,
        float(instructions + sum(counted)) if len(counted) == 2 else float("nan"),
        run.unanswered,
    )


def by_block(run: Quantities, weights: Weights) -> list[Share]:
    """Return the cycles of each block, the most expensive first."""
    table, parts = run.table, _parts(run, weights)
    rows = range(len(table))
    return _sorted(
        [
            _share(table, row, int(table.blocks["address"][row].as_py()), parts[row], (row,))
            for row in rows
        ]
    )


def by_function(run: Quantities, weights: Weights) -> list[Share]:
    """Return the cycles of each function, the most expensive first."""
    table, parts = run.table, _parts(run, weights)
    rows_of: dict[tuple[str, str], list[int]] = {}
    for row, key in enumerate(zip(table.words("object"), table.words("function"), strict=True)):
        rows_of.setdefault(key, []).append(row)
    return _sorted(
        [_share(table, rows[0], None, parts[rows].sum(axis=0), rows) for rows in rows_of.values()]
    )


def _parts(run: Quantities, weights: Weights) -> F64:
    """Return the cycles of each block by quantity, ``[n, q]``."""
    return np.stack([run.columns[name] for name in QUANTITIES], axis=1) * weights.array()


def _share(
    table: EventTable, row: int, address: int | None, parts: F64, rows: Sequence[int]
) -> Share:
    own = dict(zip(QUANTITIES, parts.tolist(), strict=True))
    executions = table.blocks["executions"]
    return Share(
        table.blocks["function"][row].as_py(),
        table.blocks["object"][row].as_py(),
        address,
        max(executions[one].as_py() for one in rows),
        float(parts.sum()),
        own,
        max(own, key=lambda name: own[name]),
    )


def _sorted(shares: list[Share]) -> list[Share]:
    return sorted(shares, key=lambda one: (-one.cycles, one.object, one.address or 0, one.function))
