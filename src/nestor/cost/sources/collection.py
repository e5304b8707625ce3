"""Gather blocks from any source: each once, with its count and where it was met first."""

from collections import Counter
from dataclasses import dataclass, field

import numpy as np

from nestor.cost.blocks.table import LONGEST_BLOCK, Table
from nestor.cost.isa.decoding import DecodeError, raw
from nestor.cost.sources.splitting import Pieces


@dataclass
class Collection:
    """Blocks and what there is to say of them; only ever added to."""

    files: int = 0
    """Objects, programs, modules or lists that gave blocks."""
    functions: int = 0
    mapped: int = 0
    """Functions whose blocks came from a basic-block address map."""
    occurrences: float = 0.0
    """Of blocks, duplicates included: the sum of the table's frequencies."""
    empty: int = 0
    """Blocks without an instruction, which are dropped."""
    undecodable: int = 0
    """Places where code could not be decoded; what stands there is dropped."""
    oversized: int = 0
    """Blocks longer than any that a table takes, which are dropped."""
    filtered: int = 0
    """Rows that a filter left out."""
    failures: Counter[str] = field(default_factory=Counter)
    """What could not be read or compiled, by reason."""
    _rows: dict[bytes, list[float]] = field(default_factory=dict, repr=False)
    _origins: list[tuple[str, str]] = field(default_factory=list, repr=False)
    _labels: dict[bytes, tuple[float, float]] = field(default_factory=dict, repr=False)

    def __len__(self) -> int:
        return len(self._rows)

    def add(self, block: bytes, source: str, function: str = "", count: float = 1.0) -> None:
        """Add ``count`` occurrences of a block that can be decoded."""
        if len(block) > LONGEST_BLOCK:
            self.oversized += 1
            return
        self.occurrences += count
        if (row := self._rows.get(block)) is not None:
            row[0] += count
        else:
            self._rows[block] = [count]
            self._origins.append((source, function))

    def add_function(self, pieces: Pieces, source: str, function: str) -> None:
        """Add what a function was cut into."""
        self.functions += 1
        self.empty += pieces.empty
        self.undecodable += pieces.undecodable
        for block in pieces.blocks:
            self.add(block, source, function)

    def add_row(
        self, block: bytes, source: str, count: float, cycles: float, spread: float
    ) -> None:
        """Add a row of a list, whose block may be anything; the first label of a block stays."""
        if not block:
            self.empty += 1
            return
        try:
            for _ in raw(block):
                pass
        except DecodeError:
            self.undecodable += 1
            return
        self.add(block, source, "", count)
        if not np.isnan(cycles):
            self._labels.setdefault(block, (cycles, spread))

    def table(self) -> Table:
        """Return the blocks in the order in which they were met."""
        blocks = tuple(self._rows)
        unknown = (np.nan, np.nan)
        labels = np.array([self._labels.get(block, unknown) for block in blocks]).reshape(-1, 2)
        return Table(
            blocks,
            labels[:, 0].astype(np.float64),
            labels[:, 1].astype(np.float64),
            frequency=np.array([row[0] for row in self._rows.values()], dtype=np.float64),
            source=tuple(source for source, _ in self._origins),
            function=tuple(function for _, function in self._origins),
        )
