"""Tables of events of a trace of blocks, with the code that its entries have now.

A trace says which entries of blocks ran, in order (:mod:`nestor.cost.trace`). So executions, edges
and taken branches are exact as far as the code still has the blocks; nothing else is counted.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Final

import pyarrow as pa

from nestor.cost.isa.decoding import DecodeError, raw
from nestor.cost.trace.messages import EntryId, Segment, transitions
from nestor.cost.trace.replay import Code, absent, code_of
from nestor.events.image import kind_of
from nestor.events.table import BLOCKS, EDGES, EXITS, About, EventTable

OBJECT: Final = "trace"
"""The name of the object in which all blocks lie."""
OUTSIDE: Final = "(outside of the program)"
"""The name of the function of code that was recorded outside of the program."""
_CALLS: Final = ("call", "indirect call")
_ALWAYS: Final = ("jump", "indirect jump", *_CALLS, "return")
"""Exits that jump each time."""
_ALIGNMENT: Final = 16


@dataclass(frozen=True)
class TracedRun:
    """One segment of a trace."""

    table: EventTable
    """Without the entries that have no code."""
    runs: int
    """Entries that ran."""
    undecodable: int
    """Of them, those whose bytes are no code."""
    missing: int
    """Of them, those in blocks that the code does not have."""


@dataclass(frozen=True)
class Piece:
    """A row of the table: code up to what leaves it, or a repeated string instruction alone."""

    code: bytes
    instructions: int
    exit: str


@dataclass(frozen=True)
class Layout:
    """Where the entries of a program lie; addresses are made up and in the order of the code.

    Entries of a function follow each other without a gap and functions with one: what lies behind
    a call is at its end, and behind a function nothing is.
    """

    addresses: dict[EntryId, int] = field(default_factory=dict)
    before: dict[EntryId, EntryId] = field(default_factory=dict)
    """The entry that ends where one begins; a function's first has none."""
    behind: dict[EntryId, EntryId] = field(default_factory=dict)
    end: int = 0
    """Where nothing lies any more."""


def layout_of(codes: Mapping[EntryId, bytes]) -> Layout:
    """Return where entries lie.

    :param codes: by entry, those of each function in their order.
    """
    functions: dict[int | None, list[EntryId]] = {}
    for entry in codes:
        functions.setdefault(entry.function, []).append(entry)
    found, end = Layout(), 0
    for entries in functions.values():
        for entry in entries:
            found.addresses[entry] = end
            end += len(codes[entry])
        for one, other in pairwise(entries):
            found.behind[one], found.before[other] = other, one
        end = _aligned(end)
    return Layout(found.addresses, found.before, found.behind, end)


def pieces_of(code: Code) -> tuple[Piece, ...]:
    """Return the rows of an entry's code, in order.

    :raises DecodeError: at bytes that are no code.
    """
    found: list[Piece] = []
    start = at = count = 0
    whole = b"".join(code)
    for instruction in raw(whole):
        end = at + instruction.len
        kind = EXITS[kind_of(whole[at:end])]
        if kind == "repeats" and count:
            found.append(Piece(whole[start:at], count, "falls through"))
            start, count = at, 0
        count += 1
        at = end
        if kind != "falls through":
            found.append(Piece(whole[start:at], count, kind))
            start, count = at, 0
    if count:
        found.append(Piece(whole[start:at], count, "falls through"))
    return tuple(found)


def traced_runs(
    segments: Iterable[Segment],
    codes: Mapping[EntryId, bytes],
    indices: Mapping[str, int],
    *,
    skip_missing: bool = False,
) -> Iterator[TracedRun]:
    """Yield the table of each segment, in order; its source is ``trace``.

    :param segments: with their order.
    :param codes: of the program's entries, those of each function in their order.
    :param indices: of functions, by name.
    :param skip_missing: leave blocks out that are not among ``codes``.
    :raises TraceError: if a block that ran is not among ``codes``, unless they are skipped.
    """
    layout = layout_of(codes)
    names: dict[int | None, str] = {}
    for name, index in indices.items():
        names.setdefault(index, name)
    pieces: dict[EntryId, Sequence[Piece] | None] = {}
    missing: set[EntryId] = set()
    recorded: dict[EntryId, Code] = {}
    for segment in segments:
        recorded |= segment.recorded
        for entry in segment.runs:
            if entry in pieces:
                continue
            code = code_of(entry, codes, recorded)
            if code is None:
                if not skip_missing:
                    raise absent(entry, indices)
                missing.add(entry)
            try:
                pieces[entry] = pieces_of(code or ())
            except DecodeError:
                pieces[entry] = None
        ran = {entry: found for entry in segment.runs if (found := pieces[entry])}
        undecodable = (entry for entry in segment.runs if pieces[entry] is None)
        yield TracedRun(
            _table(segment, ran, layout, names),
            sum(segment.runs.values()),
            sum(segment.runs[entry] for entry in undecodable),
            sum(count for entry, count in segment.runs.items() if entry in missing),
        )


def _table(
    segment: Segment,
    ran: Mapping[EntryId, Sequence[Piece]],
    layout: Layout,
    names: Mapping[int | None, str],
) -> EventTable:
    """Return the table of the entries that ran and have code."""
    addresses, end = dict(layout.addresses), layout.end
    for entry, pieces in ran.items():
        if entry not in addresses:  # it was recorded outside of the program
            addresses[entry] = end
            end = _aligned(end + sum(len(piece.code) for piece in pieces))
    steps = transitions(segment, ran)
    leaving: dict[EntryId, dict[EntryId, int]] = {}
    for (source, target), count in steps.items():
        leaving.setdefault(source, {})[target] = count
    columns: dict[str, list[object]] = {name: [] for name in BLOCKS.names}
    edges: list[tuple[int, int, int]] = []
    last: dict[EntryId, int] = {}
    for entry in sorted(ran, key=addresses.__getitem__):
        address, runs = addresses[entry], segment.runs[entry]
        for number, piece in enumerate(ran[entry], 1):
            ends = number == len(ran[entry])
            taken = runs if piece.exit in _ALWAYS else 0
            if ends and piece.exit == "conditional":
                taken = _taken(leaving.get(entry, {}), layout.behind.get(entry))
            row = {
                "object": OBJECT,
                "function": OUTSIDE if entry.function is None else names.get(entry.function, ""),
                "address": address,
                "code": piece.code,
                "instructions": piece.instructions,
                "exit": piece.exit,
                "executions": runs,
                "taken": taken,
            }
            for name, column in columns.items():
                column.append(row.get(name))
            last[entry] = address
            address += len(piece.code)
            if not ends:
                edges.append((last[entry], address, runs))
    for (source, target), count in steps.items():
        if _is_direct(ran[source][-1].exit, source, target, ran, layout):
            edges.append((last[source], addresses[target], count))
    sources, targets, counts = ([edge[i] for edge in sorted(edges)] for i in range(3))
    where = [OBJECT] * len(edges)
    return EventTable(
        About("trace", 1, OBJECT),
        pa.table(columns, schema=BLOCKS),
        pa.table([where, sources, where, targets, counts], schema=EDGES),
    )


def _taken(leaving: Mapping[EntryId, int], behind: EntryId | None) -> int:
    """Return how often a condition jumped.

    :param leaving: how often each entry ran after it.
    :param behind: what lies behind it and runs if it does not jump.
    """
    through = 0 if behind is None else leaving.get(behind, 0)
    if not through and len(leaving) > 1:
        # The traced code lacked the jump behind it: LLVM jumps by the condition to the commoner of
        # two blocks of which neither lies behind.
        return max(leaving.values())
    return sum(leaving.values()) - through


def _is_direct(
    kind: str,
    source: EntryId,
    target: EntryId,
    ran: Mapping[EntryId, Sequence[Piece]],
    layout: Layout,
) -> bool:
    """Tell whether control can go from an entry to another without code that leaves no trace.

    Between the others a library ran: what follows it was not begun by what is before it.
    """
    if source.function is None or target.function is None:
        return True
    before = layout.before.get(target)
    if kind == "return":
        return before is not None and before in ran and ran[before][-1].exit in _CALLS
    if kind in _CALLS:
        return before is None
    return before is None or source.function == target.function


def _aligned(end: int) -> int:
    """Return the next address at which a function may begin."""
    return end - end % _ALIGNMENT + _ALIGNMENT
