"""Blocks of comma-separated lists, such as BHive's: machine code in hexadecimal, then numbers.

BHive (Chen and others, "BHive: A Benchmark Suite and Measurement Framework for Validating x86-64
Basic Block Performance Models", 2019) publishes ``hex,cycles`` with the cycles of 100 iterations,
and ``hex,count`` in its lists of sources. There is no line of headings in either; a list with one
says by itself what its columns are.
"""

import csv
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np

from nestor.cost.sources.collection import Collection
from nestor.cost.sources.settings import Columns
from nestor.errors import NestorError

_LARGEST: Final = 1 << 30
"""Bytes of a list."""
_HEX_NAMES = ("block_hex", "hex")


class ListError(NestorError):
    """A list that cannot be read."""


@dataclass(frozen=True)
class _Layout:
    block: int
    cycles: int | None
    spread: int | None
    frequency: int | None
    iterations: float


def read(path: Path, columns: Columns, into: Collection) -> None:
    """Add the blocks of a list to ``into``; rows that cannot be decoded are counted.

    A list with headings has ``hex`` or ``block_hex``, and perhaps ``cycles`` (per iteration),
    ``spread`` and ``frequency``.

    :raises ListError: if the file cannot be read, or a number in it is none.
    """
    unnamed = _Layout(0, columns.cycles_column, None, columns.frequency_column, columns.iterations)
    layout: _Layout | None = None
    try:
        if path.stat().st_size > _LARGEST:
            raise ListError(f"'{path}' is larger than any list of blocks; split it.")
        with path.open(newline="", encoding="utf-8") as file:
            for number, row in enumerate(csv.reader(file), 1):
                if not row:
                    continue
                if layout is None:
                    layout = _headings(row) or unnamed
                    if layout is not unnamed:
                        continue
                _add(row, layout, f"'{path}', line {number:,}", path, into)
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise ListError(f"'{path}' cannot be read as a list ({error}).") from error
    into.files += 1


def _headings(row: list[str]) -> _Layout | None:
    """Return the layout that a first row names; None if it is a row like any other."""
    names = [cell.strip().lower() for cell in row]
    block = next((names.index(name) for name in _HEX_NAMES if name in names), None)
    if block is None:
        return None

    def place(name: str) -> int | None:
        return names.index(name) if name in names else None

    return _Layout(block, place("cycles"), place("spread"), place("frequency"), 1.0)


def _add(row: list[str], layout: _Layout, where: str, path: Path, into: Collection) -> None:
    try:
        block = bytes.fromhex(row[layout.block])
    except (ValueError, IndexError):
        into.undecodable += 1
        return
    cycles = _number(row, layout.cycles, where) / layout.iterations
    frequency = _number(row, layout.frequency, where)
    into.add_row(
        block,
        str(path),
        1.0 if np.isnan(frequency) else frequency,
        cycles if cycles > 0 else np.nan,
        _number(row, layout.spread, where),
    )


def _number(row: list[str], column: int | None, where: str) -> float:
    """Return a number of a row, NaN where the cell is empty."""
    if column is None or column >= len(row) or not row[column].strip():
        return np.nan
    try:
        value = float(row[column])
    except ValueError:
        value = np.inf
    if np.isinf(value) or value < 0:
        raise ListError(
            f"{where} has {row[column][:40]!r} in column {column}, which is not a finite number"
            " of at least 0; name the right column, or leave the row out."
        )
    return value
