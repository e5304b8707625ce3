"""Cut the instructions that a run executed into basic blocks, with the edges between them.

A block ends at a branch, a call, a return or a system call, before anything that is jumped to, and
where neighbours ran a different number of times. A string instruction that jumps to itself is a
block of its own.
"""

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import iced_x86
import numpy as np
import numpy.typing as npt
import pyarrow as pa
from iced_x86 import OpKind

from nestor.events.table import BLOCKS, EDGES, EVENTS, EXITS, MAP_BLOCK, About, EventTable

U64 = npt.NDArray[np.uint64]
I64 = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

_KIND: Final = {name: number for number, name in enumerate(EXITS)}
FALLS_THROUGH, REPEATS = _KIND["falls through"], _KIND["repeats"]
"""Positions in :data:`nestor.events.table.EXITS`."""
_ALWAYS: Final = tuple(
    _KIND[name] for name in ("jump", "call", "return", "indirect jump", "indirect call")
)
"""Kinds that jump whenever they run."""
_DIRECT: Final = frozenset(_KIND[name] for name in ("conditional", "jump", "call"))
_NEAR: Final = frozenset({OpKind.NEAR_BRANCH64, OpKind.NEAR_BRANCH32, OpKind.NEAR_BRANCH16})


@dataclass(frozen=True)
class LoadedObject:
    """A program or library, where it lay in memory."""

    name: str
    start: int
    size: int
    bias: int
    """Of its addresses in memory over those in its file."""


@dataclass(frozen=True)
class Executed:
    """Instructions that a run executed, in the order of their addresses, ``[n]`` each."""

    address: U64
    """In memory; each once."""
    code: Sequence[bytes]
    kind: I64
    """How each passes control on, as a position in ``EXITS``."""
    executions: I64
    """For a repeated string instruction, its turns included."""
    events: Mapping[str, I64]
    """Names of ``EVENTS``; those that are absent are not counted."""
    edge_from: U64
    """Instructions that go to places that their code does not name, ``[e]``."""
    edge_to: U64
    edge_count: I64
    objects: Sequence[LoadedObject]
    function_start: U64
    """Addresses from which on the code belongs to a function, in ascending order, ``[f]``."""
    function_name: Sequence[str]


def table_of(run: Executed, about: About) -> EventTable:
    """Return the blocks of a run and the edges between them."""
    count = len(run.address)
    if not count:
        return EventTable(about, BLOCKS.empty_table(), EDGES.empty_table())
    length = np.fromiter(map(len, run.code), np.uint64, count)
    targets = _targets(run)
    starts = np.flatnonzero(_leaders(run, length, targets))
    ends = np.append(starts[1:], count)
    last = ends - 1
    kind = run.kind[last]
    turns = run.events.get("rep_turns", np.zeros(count, np.int64))[last]
    executions = run.executions[starts] - np.where(kind == REPEATS, turns, 0)
    objects, bias = _objects(run.objects, run.address[starts])
    at = np.searchsorted(run.function_start, run.address[starts], side="right") - 1
    names = [run.function_name[i] if i >= 0 else "" for i in at.tolist()]
    columns = {
        "object": objects,
        "function": names,
        "address": run.address[starts] - bias,
        "code": [
            b"".join(run.code[start:end])
            for start, end in zip(starts.tolist(), ends.tolist(), strict=True)
        ],
        "instructions": ends - starts,
        "exit": [EXITS[one] for one in kind.tolist()],
        "executions": np.maximum(executions, 0),
        MAP_BLOCK: pa.nulls(len(starts), pa.int64()),
    }
    for name in EVENTS:
        column = run.events.get(name)
        columns[name] = (
            pa.nulls(len(starts), pa.int64()) if column is None else np.add.reduceat(column, starts)
        )
    if "taken" in run.events:
        columns["taken"] = np.where(np.isin(kind, _ALWAYS), executions, run.events["taken"][last])
    blocks = pa.table({name: pa.array(columns[name], BLOCKS.field(name).type) for name in columns})
    return EventTable(about, blocks.cast(BLOCKS), _edges(run, starts, last, length, targets))


def _targets(run: Executed) -> U64:
    """Return where the code of each direct branch goes, ``[n]``; 0 for all others."""
    targets = np.zeros(len(run.address), np.uint64)
    for row in np.flatnonzero(np.isin(run.kind, list(_DIRECT))).tolist():
        decoder = iced_x86.Decoder(64, run.code[row], ip=int(run.address[row]))
        instruction = decoder.decode()
        if instruction.op_count and instruction.op0_kind in _NEAR:
            targets[row] = instruction.near_branch_target
    return targets


def _leaders(run: Executed, length: U64, targets: U64) -> Bools:
    """Tell which instructions begin a block, ``[n]``."""
    leads = np.ones(len(run.address), np.bool_)
    leads[1:] = (
        (run.address[1:] != run.address[:-1] + length[:-1])
        | (run.kind[:-1] != FALLS_THROUGH)
        | (run.kind[1:] == REPEATS)
        | (run.executions[1:] != run.executions[:-1])
        | np.isin(run.address[1:], np.concatenate([targets[targets != 0], run.edge_to]))
        | np.isin(run.address[1:], run.function_start[_renamed(run.function_name)])
    )
    return leads


def _renamed(names: Sequence[str]) -> Bools:
    """Tell where a name differs from the one before it."""
    differs = [True, *(after != before for before, after in itertools.pairwise(names))]
    return np.array(differs[: len(names)], np.bool_)


def _objects(objects: Sequence[LoadedObject], address: U64) -> tuple[list[str], U64]:
    """Return the name of the object at each address, and the object's bias."""
    if not objects:
        return [""] * len(address), np.zeros(len(address), np.uint64)
    ordered = sorted(objects, key=lambda one: one.start)
    start = np.array([one.start for one in ordered], np.uint64)
    end = start + np.array([one.size for one in ordered], np.uint64)
    bias = np.array([one.bias & ((1 << 64) - 1) for one in ordered], np.uint64)
    at = np.searchsorted(start, address, side="right") - 1
    inside = (at >= 0) & (address < end[at])
    names = [
        ordered[i].name if held else ""
        for i, held in zip(at.tolist(), inside.tolist(), strict=True)
    ]
    return names, np.where(inside, bias[at], np.uint64(0))


def _edges(run: Executed, starts: I64, last: I64, length: U64, targets: U64) -> pa.Table:
    """Return the edges of blocks by the addresses of their beginnings."""
    kind, executions = run.kind[last], run.executions[starts]
    taken = run.events.get("taken", np.zeros(len(run.address), np.int64))[last]
    behind = run.address[last] + length[last]
    goes_on = np.isin(kind, [_KIND[k] for k in ("falls through", "conditional", "system call")])
    repeats = kind == REPEATS
    turns = run.events.get("rep_turns", np.zeros(len(run.address), np.int64))[last]
    onwards = executions - np.where(kind == _KIND["conditional"], taken, 0) - repeats * turns
    jumps = np.where(kind == _KIND["conditional"], taken, executions)
    direct = targets[last] != 0
    present = np.isin(behind, run.address)
    by_fall = (goes_on | repeats) & present
    # An edge of an instruction starts at the block that ends with it.
    block = np.searchsorted(run.address[last], run.edge_from)
    block = np.minimum(block, len(last) - 1)
    own = run.address[last][block] == run.edge_from
    source = np.concatenate([np.flatnonzero(by_fall), np.flatnonzero(direct), block[own]])
    to = np.concatenate([behind[by_fall], targets[last][direct], run.edge_to[own]])
    count = np.concatenate([onwards[by_fall], jumps[direct], run.edge_count[own]])
    kept = count > 0
    begin = run.address[starts][source[kept]]
    from_object, from_bias = _objects(run.objects, begin)
    to_object, to_bias = _objects(run.objects, to[kept])
    return pa.table(
        {
            "from_object": from_object,
            "from_address": begin - from_bias,
            "to_object": to_object,
            "to_address": to[kept] - to_bias,
            "count": count[kept],
        }
    ).cast(EDGES)
