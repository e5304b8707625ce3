"""What a table holds, in numbers."""

from collections import Counter
from dataclasses import dataclass

from nestor.cost.blocks.table import Table
from nestor.cost.isa.block_categories import categories
from nestor.cost.isa.decoding import DecodeError, decode
from nestor.progress import Progress, silent

_BINS = ((1, 1), (2, 2), (3, 3), (4, 4), (5, 6), (7, 8), (9, 10), (11, 15), (16, 20), (21, 50))
_STEP = 2_000


@dataclass(frozen=True)
class Summary:
    """Counts of rows, unless it says otherwise."""

    rows: int
    distinct: int
    """Different blocks."""
    occurrences: float | None
    """Sum of the frequencies; None if the table has none."""
    labelled: int
    stable: int
    undecodable: int
    machines: dict[str, int]
    """By CPU; rows without one are left out."""
    sources: int
    """Different files and modules of first occurrence."""
    instructions: dict[str, int]
    """By number of instructions, as ``"5-6"``."""
    categories: dict[str, int]
    """By category (``nestor.cost.isa.block_categories``), the most frequent first; they overlap."""
    opcodes: dict[str, int]
    """Instructions by iced-x86's ``Code``, the most frequent first."""

    @property
    def duplicates(self) -> int:
        """Rows whose block stands in an earlier row, too."""
        return self.rows - self.distinct


def summarise(table: Table, opcodes: int = 20, progress: Progress = silent) -> Summary:
    """Count what is in ``table``; of opcodes, the ``opcodes`` most frequent."""
    lengths: Counter[int] = Counter()
    kinds: Counter[str] = Counter()
    codes: Counter[str] = Counter()
    undecodable = 0
    for done, block in enumerate(table.blocks):
        if done % _STEP == 0:
            progress("Decoding", done, len(table))
        try:
            instructions = decode(block)
        except DecodeError:
            undecodable += 1
            continue
        lengths[len(instructions)] += 1
        kinds.update(categories(block))
        codes.update(instruction.code for instruction in instructions)
    progress("Decoding", len(table), len(table))
    return Summary(
        rows=len(table),
        distinct=len(set(table.blocks)),
        occurrences=None if table.frequency is None else float(table.frequency.sum()),
        labelled=int(table.labelled.sum()),
        stable=int(table.stable.sum()),
        undecodable=undecodable,
        machines=dict(Counter(name for name in table.machine or () if name).most_common()),
        sources=len({name for name in table.source or () if name}),
        instructions=_histogram(lengths),
        categories=dict(kinds.most_common()),
        opcodes=dict(codes.most_common(opcodes)),
    )


def _histogram(lengths: Counter[int]) -> dict[str, int]:
    last = _BINS[-1][1]
    bins = {
        str(low) if low == high else f"{low}-{high}": sum(
            count for length, count in lengths.items() if low <= length <= high
        )
        for low, high in _BINS
    }
    bins[f"{last + 1}+"] = sum(count for length, count in lengths.items() if length > last)
    return bins
