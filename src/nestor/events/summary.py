"""Events of a run in total, and by function."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from nestor.events.table import EVENTS, F64, I64, EventTable


@dataclass(frozen=True)
class FunctionEvents:
    """What one function did itself, without those that it calls."""

    function: str
    """Empty where no symbol names it."""
    object: str
    instructions: int
    events: dict[str, int | None]
    """By name; None where the source does not count it."""


def by_function(table: EventTable) -> list[FunctionEvents]:
    """Return the functions of a run, the one with the most instructions first."""
    keys = list(zip(table.words("object"), table.words("function"), strict=True))
    index = {key: number for number, key in enumerate(dict.fromkeys(keys))}
    rows = np.array([index[key] for key in keys], np.int64)
    instructions = _sums(rows, table.instructions_by_block(), len(index))
    events = {
        name: _sums(rows, table.numbers(name), len(index)) if table.has(name) else None
        for name in EVENTS
    }
    found = [
        FunctionEvents(
            function,
            place,
            instructions[number],
            {name: None if sums is None else sums[number] for name, sums in events.items()},
        )
        for (place, function), number in index.items()
    ]
    return sorted(found, key=lambda one: (-one.instructions, one.object, one.function))


def _sums(rows: I64, values: F64, count: int) -> Sequence[int]:
    return [round(total) for total in np.bincount(rows, values, count).tolist()]


def totals(table: EventTable) -> dict[str, int | None]:
    """Return instructions, executions of blocks, and each event of a whole run."""
    own: dict[str, int | None] = {
        "instructions": table.instructions,
        "executions": table.total("executions"),
    }
    return own | {name: table.total(name) for name in EVENTS}
