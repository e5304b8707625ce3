"""Measurements in a file: parquet that is also a table of blocks (``cost/table.py``)."""

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq

from nestor.cost.blocks.table import TableError, write_columns
from nestor.cost.measure.label import Measurement
from nestor.files import open_regular

_SCHEMA: Final = pa.schema(
    [
        ("block_hex", pa.string()),
        ("cycles", pa.float64()),
        ("spread", pa.float64()),
        ("passes", pa.int16()),
        ("pages", pa.int16()),
        ("instructions", pa.int32()),
        ("calibration", pa.float64()),
        ("status", pa.string()),
        ("backend", pa.string()),
        ("machine", pa.string()),
    ]
)
_MEASURED: Final = tuple(
    field.name for field in dataclasses.fields(Measurement) if field.name != "block"
)


@dataclass(frozen=True)
class Row:
    """A measurement with the back end and the machine that it is from."""

    measurement: Measurement
    backend: str
    machine: str

    @property
    def key(self) -> tuple[bytes, str, str]:
        """What is measured once."""
        return self.measurement.block, self.backend, self.machine


def write(rows: Sequence[Row], path: Path) -> None:
    """Write rows whole or not at all.

    :raises TableError: if the file cannot be written.
    """
    found = [row.measurement for row in rows]
    columns = {
        "block_hex": [one.block.hex() for one in found],
        **{name: [getattr(one, name) for one in found] for name in _MEASURED},
        "backend": [row.backend for row in rows],
        "machine": [row.machine for row in rows],
    }
    arrays = [pa.array(columns[field.name], field.type, from_pandas=True) for field in _SCHEMA]
    write_columns(pa.Table.from_arrays(arrays, schema=_SCHEMA), path)


def read(path: Path) -> list[Row]:
    """Return the rows of a file that :func:`write` wrote.

    :raises TableError: if it is something else.
    """
    try:
        with open_regular(path, "measured blocks") as source, pq.ParquetFile(source) as file:
            lines = file.read(columns=_SCHEMA.names).cast(_SCHEMA).to_pylist()
        return [_row(line) for line in lines]
    except (pa.ArrowException, OSError, ValueError, TypeError, KeyError) as error:
        raise TableError(
            f"'{path}' holds no measurements to go on from; name another file for the result."
        ) from error


def _row(line: dict[str, object]) -> Row:
    block = bytes.fromhex(str(line.pop("block_hex")))
    backend, machine = str(line.pop("backend")), str(line.pop("machine"))
    present = {name: value for name, value in line.items() if value is not None}
    return Row(Measurement(block, **present), backend, machine)  # type: ignore[arg-type]
