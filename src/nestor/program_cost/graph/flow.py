"""The graph of a run's blocks inside functions: a call goes on behind itself."""

from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from nestor.events.table import EventTable
from nestor.program_cost.chains import pairs, row_of

I64 = npt.NDArray[np.int64]
F64 = npt.NDArray[np.float64]

CALLS: Final = ("call", "indirect call", "system call")
_LEAVES: Final = (*CALLS, "return")
_LONGEST: Final = 4
"""Blocks of the path before a block."""


@dataclass(frozen=True)
class Flow:
    """Edges between rows of a table, all ``[edges]``, and what they say of each row."""

    sources: I64
    targets: I64
    counts: F64
    before: I64
    """The row from which most executions come ``[rows]``; -1 if none does."""
    share_before: F64
    """Part of a row's executions that comes from there ``[rows]``."""
    entries: I64
    """Edges that lead to a row ``[rows]``."""

    def path_to(self, row: int) -> list[int]:
        """Return the rows that mostly run before a row, in their order: at most four."""
        path = [row]
        while len(path) <= _LONGEST:
            above = int(self.before[path[0]])
            if above < 0 or above in path:
                break
            path.insert(0, above)
        return path[:-1]


def functions_of(table: EventTable) -> I64:
    """Return the number of each row's function ``[rows]``."""
    names = list(zip(table.words("object"), table.words("function"), strict=True))
    numbers = {name: number for number, name in enumerate(dict.fromkeys(names))}
    return np.array([numbers[name] for name in names], np.int64)


def flow_of(table: EventTable) -> Flow:
    """Return the graph of a run, without edges into functions and back."""
    executions, exits = table.numbers("executions"), table.words("exit")
    edges = [edge for edge in pairs(table) if exits[edge[0]] not in _LEAVES]
    rows = row_of(table)
    behind = zip(table.words("object"), table.words("address"), table.words("code"), strict=True)
    for row, (name, address, code) in enumerate(behind):
        target = rows.get((name, address + len(code)))
        if exits[row] in CALLS and target is not None:
            edges.append((row, target, int(min(executions[row], executions[target]))))
    sources, targets, counts = np.array(edges, np.int64).reshape(-1, 3).T
    before, most = np.full(len(table), -1, np.int64), np.zeros(len(table))
    for source, target, count in edges:
        if count > most[target]:
            before[target], most[target] = source, count
    share = np.divide(most, executions, out=np.zeros(len(table)), where=executions > 0)
    entries = np.bincount(targets, minlength=len(table))
    return Flow(sources, targets, counts.astype(np.float64), before, share, entries)
