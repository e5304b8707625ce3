"""The table of blocks: machine code, what it costs, how often it occurs and where it is from.

On disk it is parquet with at least the column ``block_hex`` (docs/reference/blocks.md). Rows are
in no particular order; a block may stand in several rows, one per machine.
"""

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from nestor.errors import NestorError
from nestor.files import open_regular, replacing

F64 = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]
Index = npt.NDArray[np.integer[Any]] | Bools

STABLE_SPREAD: Final = 0.05
"""A label is stable if its passes differ by less than this part of their median."""

LONGEST_BLOCK: Final = 1 << 16
"""Bytes; longer rows are refused."""

_DATA: Final = Path(__file__).parents[1] / "data"
_NAMED: Final = {
    "zen4": ("zen4.parquet", "AMD Zen 4"),
    "zen4-sweep": ("zen4_sweep.parquet", "AMD Zen 4"),
    "zen5": ("zen5.parquet", "AMD Zen 5"),
}
"""The data sets of the package: file and machine."""
_METHOD: Final = "rdtsc"
"""How their labels were measured."""


class TableError(NestorError):
    """A table that cannot be read or written; the text says what to do."""


@dataclass(frozen=True)
class Table:
    """Blocks in rows; all columns have the same length n.

    A missing column is None, a missing number NaN.
    """

    blocks: tuple[bytes, ...]
    cycles: F64
    """Core cycles per iteration, positive, ``[n]``."""
    spread: F64
    """(max − min) / median of the passes that were measured, ``[n]``."""
    machine: tuple[str, ...] | None = None
    """The CPU of each label."""
    frequency: F64 | None = None
    """How often the block occurs in what it was extracted from, ``[n]``."""
    source: tuple[str, ...] | None = None
    """File or module of the first occurrence."""
    function: tuple[str, ...] | None = None
    """Function of the first occurrence, empty where that has no name."""
    backend: tuple[str, ...] | None = None
    """How each label was measured (``nestor.cost.measure.backend``)."""

    def __len__(self) -> int:
        return len(self.blocks)

    @property
    def labelled(self) -> Bools:
        """Rows with a number of cycles, ``[n]``."""
        return ~np.isnan(self.cycles)

    @property
    def stable(self) -> Bools:
        """Rows whose label is stable; one without a spread is not, ``[n]``."""
        return self.labelled & (self.spread < STABLE_SPREAD)

    def select(self, rows: Index) -> "Table":
        """Return the rows of an index array, in its order, or of a mask ``[n]``."""
        index = np.flatnonzero(rows) if rows.dtype == np.bool_ else rows

        def words(column: tuple[Any, ...]) -> tuple[Any, ...]:
            return tuple(column[i] for i in index.tolist())

        return Table(
            words(self.blocks),
            self.cycles[index],
            self.spread[index],
            None if self.machine is None else words(self.machine),
            None if self.frequency is None else self.frequency[index],
            None if self.source is None else words(self.source),
            None if self.function is None else words(self.function),
            None if self.backend is None else words(self.backend),
        )


def unlabelled(blocks: Sequence[bytes]) -> Table:
    """Return the table of ``blocks`` without labels, counts or origins."""
    unknown = np.full(len(blocks), np.nan)
    return Table(tuple(blocks), unknown, unknown.copy())


def named(name_or_path: str | Path) -> Table:
    """Return a data set of the package by its name (``zen5``), or the table in a file.

    :raises TableError: if it is neither, or the file is broken.
    """
    if str(name_or_path) in _NAMED:
        file, machine = _NAMED[str(name_or_path)]
        table = read(_DATA / file)
        return dataclasses.replace(
            table, machine=(machine,) * len(table), backend=(_METHOD,) * len(table)
        )
    if not Path(name_or_path).is_file():
        raise TableError(
            f"'{name_or_path}' is neither a file nor one of the data sets {', '.join(_NAMED)}; name"
            " a parquet file with the column block_hex."
        )
    return read(Path(name_or_path))


def joined(names: Sequence[str | Path]) -> Table:
    """Return the rows of several tables or data sets, one after the other; see :func:`named`.

    :raises TableError: if one of them cannot be read.
    """
    parts = [named(name) for name in names]
    if len(parts) == 1:
        return parts[0]

    def column(name: str) -> tuple[str, ...] | None:
        values = [getattr(part, name) or ("",) * len(part) for part in parts]
        return tuple(word for part in values for word in part) if any(map(any, values)) else None

    return Table(
        tuple(block for part in parts for block in part.blocks),
        np.concatenate([part.cycles for part in parts]),
        np.concatenate([part.spread for part in parts]),
        machine=column("machine"),
        source=column("source"),
        function=column("function"),
        backend=column("backend"),
    )


def read(path: Path) -> Table:
    """Return the table in a parquet file; columns that a table does not have are left alone.

    :raises ReadError: if there is no regular file.
    :raises TableError: if the file is not parquet, lacks ``block_hex`` or has a broken row.
    """
    try:
        with open_regular(path, "a table of blocks") as source, pq.ParquetFile(source) as file:
            present = set(file.schema_arrow.names)
            wanted = [name for name in _SCHEMA.names if name in present]
            columns = file.read(columns=wanted) if "block_hex" in present else None
    except (pa.ArrowException, OSError, ValueError) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise TableError(
            f"'{path}' cannot be read as parquet ({reason}); write the table again."
        ) from error
    if columns is None:
        raise TableError(f"'{path}' has no column block_hex; 'nestor blocks extract' makes tables.")
    blocks = _blocks(_column(columns, "block_hex", path) or [], path)
    cycles = _numbers(columns, "cycles", path)
    spread = _numbers(columns, "spread", path)
    return Table(
        blocks,
        np.full(len(blocks), np.nan) if cycles is None else cycles,
        np.full(len(blocks), np.nan) if spread is None else spread,
        _words(columns, "machine", path),
        _numbers(columns, "frequency", path),
        _words(columns, "source", path),
        _words(columns, "function", path),
        _words(columns, "backend", path),
    )


def write(table: Table, path: Path) -> None:
    """Write a table whole or not at all; :func:`read` gives it back.

    :raises TableError: if the file cannot be written.
    """
    columns: dict[str, Any] = {"block_hex": [block.hex() for block in table.blocks]}
    for name in _SCHEMA.names[1:]:
        column = getattr(table, name)
        if column is not None:
            # A missing label is null in the file, as other readers expect.
            columns[name] = pa.array(column, _SCHEMA.field(name).type, from_pandas=True)
    write_columns(pa.table(columns), path)


def write_columns(columns: pa.Table, path: Path) -> None:
    """Write any parquet file atomically.

    :raises TableError: if the file cannot be written.
    """
    try:
        with replacing(path) as scratch:
            pq.write_table(columns, scratch, compression="zstd")
    except OSError as error:
        raise TableError(
            f"'{path}' cannot be written ({error.strerror or error}); choose another place."
        ) from error


_SCHEMA: Final = pa.schema(
    [
        ("block_hex", pa.string()),
        ("cycles", pa.float64()),
        ("spread", pa.float64()),
        ("machine", pa.string()),
        ("frequency", pa.float64()),
        ("source", pa.string()),
        ("function", pa.string()),
        ("backend", pa.string()),
    ]
)


def _column(columns: pa.Table, name: str, path: Path) -> list[Any] | None:
    """Return a column of texts, None where one is missing."""
    if name not in columns.column_names:
        return None
    try:
        values: list[Any] = columns[name].cast(_SCHEMA.field(name).type).to_pylist()
    except (pa.ArrowException, ValueError) as error:
        raise _wrong_kind(columns, name, path) from error
    return values


def _words(columns: pa.Table, name: str, path: Path) -> tuple[str, ...] | None:
    values = _column(columns, name, path)
    return None if values is None else tuple(value or "" for value in values)


def _numbers(columns: pa.Table, name: str, path: Path) -> F64 | None:
    """Return a column of finite positive numbers, NaN in empty cells; a spread may be 0."""
    if name not in columns.column_names:
        return None
    if pa.types.is_string(columns[name].type):  # a cast would parse them
        raise _wrong_kind(columns, name, path)
    try:
        column = columns[name].cast(pa.float64())
    except (pa.ArrowException, ValueError) as error:
        raise _wrong_kind(columns, name, path) from error
    values: F64 = np.array(column.to_numpy(), dtype=np.float64)
    wrong = np.isinf(values) | (values < 0) | ((values == 0) & (name == "cycles"))
    if wrong.any():
        row = int(np.argmax(wrong))
        raise TableError(
            f"'{path}' says {values[row]:g} for {name} in row {row}, which is out of range; leave"
            " the row out, or the cell empty."
        )
    return values


def _wrong_kind(columns: pa.Table, name: str, path: Path) -> TableError:
    kind, wanted = columns[name].type, _SCHEMA.field(name).type
    return TableError(
        f"The column {name} of '{path}' holds {kind} instead of {wanted}; convert it."
    )


def _blocks(texts: list[str | None], path: Path) -> tuple[bytes, ...]:
    blocks = []
    for row, text in enumerate(texts):
        try:
            block = bytes.fromhex(text or "")
        except ValueError:
            block = b""
        if not 0 < len(block) <= LONGEST_BLOCK:
            shown = repr((text or "")[:40])
            raise TableError(
                f"'{path}' has no block of 1 to {LONGEST_BLOCK:,} bytes in hexadecimal in row {row}"
                f" ({shown}); leave the row out."
            )
        blocks.append(block)
    return tuple(blocks)
