"""What a trace costs: the sum over the entries that ran, with the code that they have now.

Each distinct entry is predicted once and counts as often as it ran. So the cost of a segment is
additive in its blocks; overlap across blocks, cache misses and mispredicted branches are not part
of it. Calls, jumps and returns cost nothing.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from nestor.cost.contract import CostModel
from nestor.cost.isa.decoding import DecodeError, sequence
from nestor.cost.isa.recurrence import jumps_to_itself
from nestor.cost.predict.single_pass import pass_cycles
from nestor.cost.trace.entries import straight
from nestor.cost.trace.messages import EntryId, Segment, TraceError

Code = tuple[bytes, ...]
"""The code of an entry: in one piece, or instruction by instruction as it was recorded."""
Prices = Callable[[Sequence[Code]], list[float]]
"""Costs of entries; NaN for one that has no cost."""


@dataclass(frozen=True)
class SegmentCost:
    """The cost of one segment."""

    cost: float
    """Sum of runs × cost of the entry; what has no cost is left out."""
    runs: int
    """Entries that ran."""
    unanswered: int
    """Of them, those without a cost."""
    missing: int
    """Of them, those in blocks that the code does not have."""


def cycles_of(model: CostModel) -> Prices:
    """Return what a cost model says: the sum of the cycles of an entry's runs of code.

    An entry that does not jump back to its own beginning is priced as a single pass
    (:mod:`nestor.cost.predict.single_pass`).
    """

    def price(entries: Sequence[Code]) -> list[float]:
        runs = [_runs(entry) for entry in entries]
        distinct = list(dict.fromkeys(run for found in runs for run in found or ()))
        place = {run: row for row, run in enumerate(distinct)}
        predicted = pass_cycles(model, distinct)
        costs = []
        for entry, found in zip(entries, runs, strict=True):
            if found is None:
                costs.append(math.nan)
                continue
            loops = len(found) == 1 == len(entry) and jumps_to_itself(entry[0])
            cycles = predicted.repeated if loops else predicted.single
            costs.append(math.fsum(cycles[place[run]] for run in found))
        return costs

    return price


def instructions_of(entries: Sequence[Code]) -> list[float]:
    """Return how many instructions each entry has, calls and jumps included."""
    found = []
    for entry in entries:
        try:
            found.append(float(sum(len(sequence(code)) for code in entry)))
        except DecodeError:
            found.append(float("nan"))
    return found


def _runs(entry: Code) -> list[bytes] | None:
    """Return the runs of an entry between calls and jumps; None if it is no code."""
    try:
        return list(straight(entry))
    except DecodeError:
        return None


def replay(
    segments: Iterable[Segment],
    codes: Mapping[EntryId, bytes],
    indices: Mapping[str, int],
    price: Prices,
    *,
    skip_missing: bool = False,
) -> Iterator[SegmentCost]:
    """Yield the cost of each segment, in order.

    :param codes: the code of the program's entries.
    :param indices: of functions, by name.
    :param skip_missing: blocks that are not among ``codes`` cost nothing and are counted: another
        register allocation lets the compiler merge or remove other blocks after it.
    :raises TraceError: if a block that ran is not among ``codes``, unless they are skipped.
    """
    prices: dict[EntryId, float] = {}
    missing: set[EntryId] = set()
    recorded: dict[EntryId, Code] = {}
    for segment in segments:
        recorded |= segment.recorded
        new: dict[EntryId, Code] = {}
        for entry in segment.runs:
            if entry in prices:
                continue
            code = code_of(entry, codes, recorded)
            if code is None and not skip_missing:
                raise absent(entry, indices)
            if code is None:
                missing.add(entry)
            new[entry] = code or ()
        prices |= dict(zip(new, price(list(new.values())), strict=True))
        found = np.array([prices[entry] for entry in segment.runs])
        runs = np.array(list(segment.runs.values()), dtype=np.float64)
        answered = np.isfinite(found)
        yield SegmentCost(
            float((found[answered] * runs[answered]).sum()),
            int(runs.sum()),
            int(runs[~answered].sum()),
            sum(count for entry, count in segment.runs.items() if entry in missing),
        )


def code_of(
    entry: EntryId, codes: Mapping[EntryId, bytes], recorded: Mapping[EntryId, Code]
) -> Code | None:
    """Return the code of an entry, empty if it has none; None if its block is missing."""
    if entry in recorded:
        return recorded[entry]
    if entry in codes:
        return (codes[entry],)
    if entry.function is not None and entry.entry > 0:
        return ()  # the call is gone, and what was behind it belongs to the entry before
    return None


def absent(entry: EntryId, indices: Mapping[str, int]) -> TraceError:
    """Return what to say of a block that ran and that the code does not have."""
    name = next((n for n, index in indices.items() if index == entry.function), None)
    where = f"of the function '{name}'" if name else f"of the function with index {entry.function}"
    return TraceError(
        f"The trace runs block {entry.block} {where}, which the code does not have; compile all"
        " modules of the traced program, from the same bitcode, with -fbasic-block-address-map, or"
        " leave such blocks out with --skip-missing."
    )
