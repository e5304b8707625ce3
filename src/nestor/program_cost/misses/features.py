"""What a compiler with a profile knows of where each block's accesses go, as a row of numbers.

All of it is read off executions, counts of edges and code. Sizes are in bytes, as logarithms.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt

from nestor.cost.isa.decoding import Instruction, Memory
from nestor.events.table import EventTable
from nestor.program_cost.graph.loops import each_once
from nestor.program_cost.misses.addresses import KINDS, LINE
from nestor.program_cost.misses.footprints import Touched, touched

I64 = npt.NDArray[np.int64]
F64 = npt.NDArray[np.float64]
_Bytes = tuple[float, float]
"""By turn and by entry of a loop."""

_RAREST: Final = 1e-7
"""Of the instructions of the run: blocks that run less often are left out."""
_ALLOCATES: Final = ("malloc", "calloc", "realloc")
_FREES: Final = ("free",)
_UNBOUNDED: Final = 1e12
_GROWTH: Final = 135168.0
"""Bytes by which the C library's heap grows at least."""

OF_THE_BLOCK: Final = (
    *KINDS, "only writes", "again", "lines a turn", "log stride", "log bound", "accessed before",
    "log share", "instructions", "log executions",
)  # fmt: skip
OF_THE_LOOP: Final = ("depth", "log turns", "log outer turns", "log entries")
OF_THE_RUN: Final = ("log instructions", "log allocations", "allocations kept", "log mappings")
SIZES: Final = (
    "a turn", "an entry", "an outer turn", "an outer entry", "an entry of the function",
    "until the next execution",
    "the function in the run", "kept allocations", "the heap", "the run",
)  # fmt: skip
"""Logarithms of bytes that each of these touches, at most."""
FEATURES: Final = (*OF_THE_BLOCK, *OF_THE_LOOP, *OF_THE_RUN, *SIZES)


@dataclass(frozen=True)
class Accesses:
    """Blocks of a run that access memory and are not very rare."""

    rows: I64
    """Of the table ``[n]``."""
    lines: F64
    """Lines that all executions of a block access ``[n]``."""
    features: F64
    """``[n, FEATURES]``"""
    instructions: float
    """Of the whole run."""

    def beside(self, capacity: float) -> F64:
        """Return the features with sizes relative to a cache of so many bytes."""
        found = self.features.copy()
        found[:, -len(SIZES) :] -= np.log(capacity)
        return found


def accesses_of_run(table: EventTable) -> Accesses:
    """Return the blocks of a run."""
    run = touched(table)
    size = table.numbers("instructions")
    work = max(float(run.executions @ size), 1.0)
    accessing = np.array([bool(found) for found in run.accesses], np.bool_)
    rows = np.flatnonzero(accessing & (run.executions * size > _RAREST * work))
    whole, of_the_run = _whole(table, work)
    of_loop = {id(loop): (run.by_turn(loop), run.by_entry(loop)) for loop in each_once(run.loops)}
    of_loop[id(None)] = 0.0, 0.0
    features = [
        (
            *_block(run, row, size[row], work),
            *_loop(run, row),
            *whole,
            *np.log1p([*_sizes(run, row, of_loop), *of_the_run, run.run]),
        )
        for row in rows.tolist()
    ]
    lines = np.array([len(run.accesses[row]) for row in rows.tolist()], np.float64)
    shape = (len(rows), len(FEATURES))
    features_of = np.array(features, np.float64).reshape(shape)
    return Accesses(rows, run.executions[rows] * lines, features_of, work)


def _block(run: Touched, row: int, size: float, work: float) -> tuple[float, ...]:
    accesses = run.accesses[row]
    strides = [abs(one.stride) for one in accesses if one.kind == "strided"]
    bounds = [one.bound for one in accesses if one.kind in ("computed", "loaded")]
    return (
        *[float(sum(one.kind == kind for one in accesses)) for kind in KINDS],
        float(sum(one.writes for one in accesses)),
        float(sum(one.again for one in accesses)),
        sum(min(stride / LINE, 1.0) for stride in strides),
        float(np.log1p(max(strides, default=0.0))),
        float(np.log1p(min(max(bounds, default=0.0), _UNBOUNDED))),
        _before(run, row),
        float(np.log(run.executions[row] * size / work)),
        size,
        float(np.log(run.executions[row])),
    )


def _before(run: Touched, row: int) -> float:
    """Return how many lines the blocks before seem to have accessed: by the same registers."""
    seen = {_place(one) for above in run.flow.path_to(row) for one in _memory(run.code[above])}
    return float(len(seen & {_place(one) for one in _memory(run.code[row])}))


def _memory(code: Sequence[Instruction]) -> Iterator[Memory]:
    for one in code:
        yield from one.memory


def _place(access: Memory) -> tuple[str, str, int]:
    return access.base, access.index, access.displacement // LINE


def _loop(run: Touched, row: int) -> tuple[float, ...]:
    loop = run.loops.get(row)
    if loop is None:
        return (0.0, 0.0, 0.0, float(np.log(run.entries[row])))
    outer = loop.outer
    return (
        float(loop.depth),
        float(np.log(max(loop.turns, 1e-9))),
        0.0 if outer is None else float(np.log(max(outer.turns, 1e-9))),
        float(np.log(loop.entries)),
    )


def _sizes(run: Touched, row: int, of_loop: Mapping[int, _Bytes]) -> tuple[float, ...]:
    """Return the first of :data:`SIZES`, those that are a block's own, in bytes."""
    loop = run.loops.get(row)
    outer = None if loop is None else loop.outer
    return (
        *of_loop[id(loop)],
        *of_loop[id(outer)],
        run.of_function[row],
        run.run / run.executions[row],
        run.of_function[row] * run.entries[row],
    )


def _whole(table: EventTable, work: float) -> tuple[tuple[float, ...], tuple[float, float]]:
    """Return :data:`OF_THE_RUN`, and the bytes of allocations that are kept and of the heap."""
    calls = _calls_of_library(table)
    allocated, freed = (
        sum(calls.get(name, 0.0) for name in names) for names in (_ALLOCATES, _FREES)
    )
    kept = max(allocated - freed, 0.0)
    counts = (
        float(np.log(work)),
        float(np.log1p(allocated)),
        kept / max(allocated, 1.0),
        float(np.log1p(calls.get("mmap", 0.0))),
    )
    return counts, (LINE * kept, _GROWTH * calls.get("brk", 0.0))


def _calls_of_library(table: EventTable) -> dict[str, float]:
    """Return how often each function of the C library is entered."""
    found: dict[str, float] = {}
    columns = (table.words("object"), table.words("function"), table.numbers("executions").tolist())
    for file, name, executions in zip(*columns, strict=True):
        if Path(file).name.startswith("libc."):
            found.setdefault(name, executions)  # the first block comes first
    return found
