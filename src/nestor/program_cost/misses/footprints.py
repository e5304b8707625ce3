"""How many bytes loops, functions and the run touch, at most: sums over accesses.

An access that stays at one place touches a line for each entry of its loop, a strided one its
stride for each turn, any other a line for each execution. What different accesses have in common
is not known, so the sums are upper bounds; a call adds what the function that it calls touches.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from nestor.cost.isa.decoding import Instruction, decode_or_nothing
from nestor.events.table import EventTable
from nestor.program_cost.chains import pairs
from nestor.program_cost.graph.flow import CALLS, Flow, flow_of, functions_of
from nestor.program_cost.graph.loops import Loop, each_once, innermost_loops
from nestor.program_cost.misses.addresses import Access, Changes, accesses_of, changes_of

I64 = npt.NDArray[np.int64]
F64 = npt.NDArray[np.float64]
Code = tuple[Instruction, ...]

_ROUNDS: Final = 8
"""How deep calls are followed."""


@dataclass(frozen=True)
class Touched:
    """What the blocks of a run touch."""

    executions: F64
    code: Sequence[Code]
    flow: Flow
    loops: Mapping[int, Loop]
    accesses: Sequence[Sequence[Access]]
    """Of each row."""
    by_row: F64
    """Bytes that each row touches in the run ``[rows]``, calls included; what an entry of its loop
    touches is counted for each."""
    outside: F64
    """The same, where entries of a loop that go to the same places count once ``[rows]``."""
    of_function: F64
    """Bytes by entry of each row's function ``[rows]``, calls included."""
    entries: F64
    """Entries of each row's function ``[rows]``."""
    run: float
    """Bytes of the whole run."""

    def by_entry(self, loop: Loop) -> float:
        """Return the bytes by entry of a loop."""
        own = [
            self.by_row[row] if self.loops[row] is loop else self.outside[row]
            for row in sorted(loop.rows)
        ]
        return float(sum(own)) / loop.entries

    def by_turn(self, loop: Loop) -> float:
        """Return the bytes by turn of a loop."""
        turns = max(float(self.executions[loop.head]), 1.0)
        return float(self.by_row[sorted(loop.rows)].sum()) / turns


def touched(table: EventTable) -> Touched:
    """Return what the blocks of a run touch."""
    executions, exits = table.numbers("executions"), table.words("exit")
    flow = flow_of(table)
    loops = innermost_loops(flow, executions)
    code = [decode_or_nothing(piece) for piece in table.words("code")]
    surroundings: dict[int, _Surroundings] = {
        id(loop): _surroundings(loop, code, executions, exits) for loop in each_once(loops)
    }
    surroundings[id(None)] = Changes(), None
    accesses = [
        accesses_of(block, *surroundings[id(loops.get(row))]) for row, block in enumerate(code)
    ]
    by_row, outside = np.zeros(len(table)), np.zeros(len(table))
    for row, found in enumerate(accesses):
        loop_of = loops.get(row)
        for one in found:
            amount = _bytes(one, executions[row], loop_of)
            by_row[row] += amount
            outside[row] += amount * _part_outside(one, loop_of)
    function = functions_of(table)
    entered = _entered(table, function)
    entries = _entries(entered, function, executions)
    by_call = _by_call(outside, entered, function, entries)
    of_function = np.bincount(function, outside + by_call) / entries
    return Touched(
        executions, code, flow, loops, accesses, by_row + by_call, outside + by_call,
        of_function[function], entries[function], float(outside.sum()),
    )  # fmt: skip


_Surroundings = tuple[Changes, Changes | None]
"""How a loop changes registers, and the loop around it."""


def _surroundings(
    loop: Loop, code: Sequence[Code], executions: F64, exits: Sequence[str]
) -> _Surroundings:
    own = _changes(loop, loop.rows, code, executions, exits)
    if loop.outer is None:
        return own, None
    return own, _changes(loop.outer, loop.outer.rows - loop.rows, code, executions, exits)


def _changes(
    loop: Loop, rows: Iterable[int], code: Sequence[Code], executions: F64, exits: Sequence[str]
) -> Changes:
    """Return how some rows of a loop change registers in a turn of it."""
    own = sorted(rows)
    turns = executions[own] / max(executions[loop.head], 1.0)
    calls = any(exits[row] in CALLS for row in own)
    return changes_of([code[row] for row in own], turns.tolist(), calls)


def _part_outside(access: Access, loop: Loop | None) -> float:
    """Return which part of what an access touches by entry is other memory each time."""
    if loop is None or loop.outer is None or not access.again:
        return 1.0
    return min(loop.outer.entries / loop.entries, 1.0)


def _bytes(access: Access, executions: float, loop: Loop | None) -> float:
    """Return the bytes that an access touches in the run."""
    entries = executions if loop is None else min(loop.entries, executions)
    if access.kind == "stack":  # the same few lines all the time
        return 0.0
    if access.kind == "fixed":
        return access.bytes
    if access.kind == "invariant":
        return access.bytes * entries
    return min(access.bytes * executions, access.bound * entries)


@dataclass(frozen=True)
class _Entered:
    """Calls, and jumps to other functions: all ``[edges]``."""

    sources: I64
    targets: I64
    counts: F64


def _entered(table: EventTable, function: I64) -> _Entered:
    exits = table.words("exit")
    edges = [
        (source, target, count)
        for source, target, count in pairs(table)
        if exits[source] in CALLS
        or (function[source] != function[target] and exits[source] != "return")
    ]
    sources, targets, counts = np.array(edges, np.int64).reshape(-1, 3).T
    return _Entered(sources, targets, counts.astype(np.float64))


def _entries(entered: _Entered, function: I64, executions: F64) -> F64:
    """Return how often each function is entered; as its first block runs, if no edge says it."""
    functions = int(function.max(initial=-1)) + 1
    found = np.bincount(function[entered.targets], entered.counts, functions)
    _, first = np.unique(function, return_index=True)
    return np.maximum(np.where(found > 0, found, executions[first]), 1.0)


def _by_call(own: F64, entered: _Entered, function: I64, entries: F64) -> F64:
    """Return the bytes that each row touches by the functions that it enters."""
    by_row, most = np.zeros(len(own)), float(own.sum())
    for _ in range(_ROUNDS):
        by_entry = np.bincount(function, own + by_row) / entries
        through = entered.counts * by_entry[function[entered.targets]]
        by_row = np.minimum(np.bincount(entered.sources, through, len(own)), most)
    return by_row
