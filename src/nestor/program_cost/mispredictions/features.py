"""What a compiler with a profile knows of each conditional branch, as a row of numbers.

All of it is read off executions, counts of edges and code: a profile of instrumented code has it,
and counts that were sampled come near.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from typing import Final

import numpy as np
import numpy.typing as npt

from nestor.cost.isa.decoding import Instruction, decode_or_nothing
from nestor.events.table import EventTable
from nestor.program_cost.graph.flow import CALLS, Flow, flow_of, functions_of
from nestor.program_cost.graph.loops import Loop, each_once, innermost_loops
from nestor.program_cost.mispredictions.conditions import Condition, condition_of

I64 = npt.NDArray[np.int64]
F64 = npt.NDArray[np.float64]

_RAREST: Final = 1e-7
"""Of the instructions of the run: branches that run less often are left out."""
_HOT: Final = 0.9
"""The part of executed branches, or of their entropy, that the hottest make up."""

OF_THE_BRANCH: Final = (
    "rarer", "mostly taken", "backward", "log share", "log rarer", "instructions", "loads",
    "stores",
)  # fmt: skip
OF_THE_PATH: Final = (
    "entries", "from one", "entropy before", "entropies before", "branches before", "behind a call",
)  # fmt: skip
OF_THE_LOOP: Final = (
    "depth", "log turns", "log loop", "loop branches", "loop entropy", "log loop's branches",
    "log loop entries", "log outer turns", "outer entropy", "log outer loop", "leaves the loop",
    "loop exits", "is the head", "closes the loop",
)  # fmt: skip
OF_THE_CODE: Final = (
    "function's entropy", "function's instructions", "function's share", "entropy", "all rarer",
    "instructions a branch", "log hot branches", "log hot entropies", "log blocks",
)  # fmt: skip
CONDITION: Final = tuple(f"condition {field.name}" for field in fields(Condition))
FEATURES: Final = (*OF_THE_BRANCH, *OF_THE_PATH, *OF_THE_LOOP, *OF_THE_CODE, *CONDITION)
RARER: Final = FEATURES.index("rarer")
"""The part of executions that goes the rarer way."""


@dataclass(frozen=True)
class Branches:
    """Conditional branches of a run that are not very rare."""

    rows: I64
    """Of the table ``[n]``."""
    executions: F64
    """``[n]``"""
    features: F64
    """``[n, FEATURES]``"""
    instructions: float
    """Of the whole run."""


@dataclass(frozen=True)
class _Run:
    """A run and what is summed over it."""

    executions: F64
    taken: F64
    size: F64
    conditional: npt.NDArray[np.bool_]
    rarer: F64
    entropy: F64
    """Bits of an execution of each row; 0 where it ends in no condition."""
    code: Sequence[bytes]
    exits: Sequence[str]
    flow: Flow
    loops: dict[int, Loop]

    def by_turn(self, loop: Loop | None) -> tuple[float, float, float, int]:
        """Return instructions, branches and entropy of a turn, and branches in the code."""
        if loop is None:
            return (-1.0, -1.0, -1.0, -1)
        rows = np.array(sorted(loop.rows))
        turns = max(float(self.executions[rows] @ (rows == loop.head)), 1.0)
        sums = [
            float(self.executions[rows] @ of[rows]) / turns
            for of in (self.size, self.conditional, self.entropy)
        ]
        return (sums[0], sums[1], sums[2], int(self.conditional[rows].sum()))


def branches_of(table: EventTable) -> Branches:
    """Return the conditional branches of a run."""
    run = _run(table)
    work = max(float(run.executions @ run.size), 1.0)
    rows = np.flatnonzero(run.conditional & (run.executions > _RAREST * work))
    whole = _whole(run, work)
    functions = _functions(table, run, work)
    loops = {id(loop): run.by_turn(loop) for loop in each_once(run.loops)}
    loops[id(None)] = run.by_turn(None)
    code = [decode_or_nothing(piece) for piece in run.code]
    leaving: dict[int, list[tuple[int, float]]] = {}
    for source, target, count in zip(
        run.flow.sources.tolist(), run.flow.targets.tolist(), run.flow.counts.tolist(), strict=True
    ):
        leaving.setdefault(source, []).append((target, count))
    branches = max(float(run.executions @ run.conditional), 1.0)
    features = [
        (
            *_own(run, row, code[row], branches),
            *_path(run, row),
            *_loop(run, row, loops, leaving.get(row, [])),
            *functions[row],
            *whole,
            *asdict(condition_of([code[one] for one in (*run.flow.path_to(row), row)])).values(),
        )
        for row in rows.tolist()
    ]
    shape = (len(rows), len(FEATURES))
    return Branches(rows, run.executions[rows], np.array(features, np.float64).reshape(shape), work)


def _run(table: EventTable) -> _Run:
    executions, taken = table.numbers("executions"), np.nan_to_num(table.numbers("taken"))
    conditional = np.array([kind == "conditional" for kind in table.words("exit")], np.bool_)
    share = np.divide(taken, executions, out=np.zeros(len(table)), where=executions > 0)
    rarer = np.clip(np.minimum(share, 1 - share), 0, 0.5) * conditional
    least = np.clip(rarer, 1e-12, None)
    entropy = -(least * np.log2(least) + (1 - least) * np.log2(1 - least)) * conditional
    flow = flow_of(table)
    return _Run(
        executions, taken, table.numbers("instructions"), conditional, rarer, entropy,
        table.words("code"), table.words("exit"), flow, innermost_loops(flow, executions),
    )  # fmt: skip


def _own(run: _Run, row: int, code: Sequence[Instruction], branches: float) -> tuple[float, ...]:
    executions, taken = run.executions[row], run.taken[row]
    accesses = [{place.access for place in one.memory} for one in code]
    return (
        run.rarer[row],
        float(2 * taken > executions),
        float(bool(run.code[row]) and run.code[row][-1] >= 0x80),  # the end of its displacement
        float(np.log(executions / branches)),
        float(np.log10(1 + max(min(taken, executions - taken), 0))),
        run.size[row],
        sum(bool(found - {"write"}) for found in accesses),
        sum(bool(found - {"read"}) for found in accesses),
    )


def _path(run: _Run, row: int) -> tuple[float, ...]:
    before = run.flow.path_to(row)[::-1]
    entropies = [run.entropy[one] for one in before if run.conditional[one]]
    return (
        run.flow.entries[row],
        run.flow.share_before[row],
        entropies[0] if entropies else -1.0,
        sum(entropies),
        len(entropies),
        float(any(run.exits[one] in CALLS for one in before)),
    )


def _loop(
    run: _Run,
    row: int,
    sums: dict[int, tuple[float, float, float, int]],
    leaving: Sequence[tuple[int, float]],
) -> tuple[float, ...]:
    loop = run.loops.get(row)
    if loop is None:
        return (0.0, *[-1.0] * 9, 0.0, 0.0, 0.0, 0.0)
    size, branches, entropy, count = sums[id(loop)]
    outer = loop.outer
    outer_size, _, outer_entropy, _ = sums[id(outer)]
    out = sum(count for target, count in leaving if target not in loop.rows)
    return (
        loop.depth,
        float(np.log(max(loop.turns, 1e-9))),
        float(np.log1p(size)),
        branches,
        entropy,
        float(np.log1p(count)),
        float(np.log(loop.entries)),
        -1.0 if outer is None else float(np.log(max(outer.turns, 1e-9))),
        outer_entropy,
        -1.0 if outer is None else float(np.log1p(outer_size)),
        float(out > 0),
        out / run.executions[row],
        float(loop.head == row),
        float(any(target == loop.head for target, _ in leaving)),
    )


def _functions(table: EventTable, run: _Run, work: float) -> list[tuple[float, float, float]]:
    """Return of each row its function's entropy and instructions a branch, and share of the run."""
    of = functions_of(table)
    entropy, branches, size = (
        np.bincount(of, run.executions * each) for each in (run.entropy, run.conditional, run.size)
    )
    least = np.maximum(branches, 1)
    columns = np.stack([entropy / least, size / least, size / work], axis=1)[of]
    return [(float(a), float(b), float(c)) for a, b, c in columns]


def _whole(run: _Run, work: float) -> tuple[float, ...]:
    branches, entropies = run.executions * run.conditional, run.executions * run.entropy
    count = max(float(branches.sum()), 1.0)
    return (
        float(entropies.sum()) / count,
        float(branches @ run.rarer) / count,
        work / count,
        float(np.log(_hottest(branches))),
        float(np.log(_hottest(entropies))),
        float(np.log(max((run.executions > 0).sum(), 1))),
    )


def _hottest(of: F64) -> int:
    """Return how many rows make up most of a sum."""
    return int(np.searchsorted(np.cumsum(np.sort(of)[::-1]), _HOT * of.sum())) + 1
