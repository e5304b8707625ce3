"""The table of events: a row for each basic block that a run executed, and the edges between them.

On disk it is two parquet files, ``NAME.parquet`` and ``NAME.edges.parquet``, whose metadata say
what was run and how it was counted (docs/reference/events.md). A block here ends with the branch
that leaves it, which is part of it; addresses are those in the file of the program or library.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Final, Literal, get_args

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from nestor.events.errors import EventsError
from nestor.files import ReadError, open_regular, replacing

I64 = npt.NDArray[np.int64]
F64 = npt.NDArray[np.float64]

Source = Literal["simulated", "callgrind", "perf", "trace"]

EVENTS: Final = (
    "taken",
    "mispredicts",
    "indirect_mispredicts",
    "l1_misses",
    "l2_misses",
    "llc_misses",
    "code_misses",
    "tlb_misses",
    "rep_turns",
    "rep_bytes",
    "reads",
    "writes",
    "cycles",
)
"""Columns that a source may lack: then all rows are null."""

BLOCKS: Final = pa.schema(
    [
        ("object", pa.string()),
        ("function", pa.string()),
        ("address", pa.uint64()),
        ("code", pa.binary()),
        ("instructions", pa.int64()),
        ("exit", pa.string()),
        ("executions", pa.int64()),
        ("map_block", pa.int64()),
        *((name, pa.int64()) for name in EVENTS),
    ]
)
MAP_BLOCK: Final = "map_block"
"""The compiler's number of the block that holds this one; null where the file has no map of it."""
EDGES: Final = pa.schema(
    [
        ("from_object", pa.string()),
        ("from_address", pa.uint64()),
        ("to_object", pa.string()),
        ("to_address", pa.uint64()),
        ("count", pa.int64()),
    ]
)
EXITS: Final = (
    "falls through",
    "conditional",
    "jump",
    "call",
    "return",
    "indirect jump",
    "indirect call",
    "system call",
    "repeats",
)
"""How a block ends; ``repeats`` is a string instruction that jumps to itself."""

EDGES_SUFFIX: Final = ".edges.parquet"
_KEY: Final = b"nestor.events"
_FORMAT: Final = 1
_MAKES_THEM: Final = "'nestor events' makes them"
_MOST_ROWS: Final = 1 << 26
LARGEST_COUNT: Final = 1 << 60
"""More than any run has."""


@dataclass(frozen=True)
class About:
    """What was run, and how it was counted."""

    source: Source
    period: int
    """Events that one sample stands for; 1 where every event is counted."""
    program: str
    """File name of the program."""
    program_digest: str = ""
    """SHA-256 of its content; empty where the source does not say."""
    machine: str = ""
    """The processor whose counters were read; empty for what is simulated."""
    crude: bool = False
    """The predictors and caches of the source are far from those of a processor."""
    settings: dict[str, str] = field(default_factory=dict)
    """How it was simulated or sampled."""


@dataclass(frozen=True)
class EventTable:
    """Events of one run."""

    about: About
    blocks: pa.Table
    """Columns of :data:`BLOCKS`, in the order of object and address."""
    edges: pa.Table
    """Columns of :data:`EDGES`."""

    def __len__(self) -> int:
        return int(self.blocks.num_rows)

    def has(self, name: str) -> bool:
        """Tell whether the source counts ``name``."""
        return len(self) == 0 or self.blocks[name].null_count < len(self)

    def numbers(self, name: str) -> F64:
        """Return a column ``[n]``, NaN where the source does not count it."""
        column = self.blocks[name].cast(pa.float64(), safe=False)
        return np.array(column.to_numpy(), dtype=np.float64)

    def words(self, name: str) -> list[Any]:
        """Return a column of texts or of code."""
        values: list[Any] = self.blocks[name].to_pylist()
        return values

    def with_columns(self, columns: Mapping[str, pa.Array | npt.NDArray[Any]]) -> "EventTable":
        """Return the table with other columns ``[n]`` of blocks in the place of its own."""
        blocks = self.blocks
        for name, values in columns.items():
            index = BLOCKS.get_field_index(name)
            field_of = BLOCKS.field(index)
            blocks = blocks.set_column(index, field_of, pa.array(values, field_of.type))
        return replace(self, blocks=blocks)

    def total(self, name: str) -> int | None:
        """Return the sum of a column; None where the source does not count it."""
        return int(np.nansum(self.numbers(name))) if self.has(name) else None

    @property
    def instructions(self) -> int:
        """Instructions executed; each turn of a repeated string instruction is one."""
        return int(self.instructions_by_block().sum())

    def instructions_by_block(self) -> F64:
        """Return the instructions that each block executed ``[n]``, as :attr:`instructions`."""
        turns = np.nan_to_num(self.numbers("rep_turns"))
        own: F64 = self.numbers("executions") * self.numbers("instructions") + turns
        return own


def edges_path(path: Path) -> Path:
    """Return where the edges of the table at ``path`` are."""
    return path.with_name(path.name.removesuffix(".parquet") + EDGES_SUFFIX)


def check_name(path: Path) -> None:
    """Raise EventsError unless a table can have this name."""
    if path.suffix != ".parquet" or path.name.endswith(EDGES_SUFFIX):
        raise EventsError(f"'{path}' is no name for a table of events; let it end in .parquet.")


def write(table: EventTable, path: Path) -> None:
    """Write both files, each whole or not at all; the edges come first.

    :raises EventsError: if one cannot be written, or ``path`` does not end in ``.parquet``.
    """
    check_name(path)
    about = {"format": _FORMAT, "run": _digest(table), **asdict(table.about)}
    metadata = {_KEY: json.dumps(about)}
    for columns, place in ((table.edges, edges_path(path)), (table.blocks, path)):
        try:
            with replacing(place) as scratch:
                pq.write_table(
                    columns.replace_schema_metadata(metadata), scratch, compression="zstd"
                )
        except OSError as error:
            raise EventsError(
                f"'{place}' cannot be written ({error.strerror or error}); choose another place."
            ) from error


def read(path: Path) -> EventTable:
    """Return the table that :func:`write` wrote, with its edges.

    :raises EventsError: if one of the files is absent, no regular file, damaged, or of another run.
    """
    blocks, about = _file(path, BLOCKS)
    try:
        edges, of_edges = _file(edges_path(path), EDGES)
    except _AbsentError:
        raise EventsError(
            f"'{path}' lacks its edges, '{edges_path(path)}'; keep both files together."
        ) from None
    if of_edges.get("run") != about.get("run"):
        raise EventsError(
            f"'{edges_path(path)}' has the edges of another run than '{path}'; collect both again."
        )
    try:
        described = About(**{name: about[name] for name in About.__dataclass_fields__})
    except (KeyError, TypeError) as error:
        raise EventsError(
            f"'{path}' does not say how it was counted ({error}); collect it again."
        ) from None
    _check_about(described, path)
    table = EventTable(described, blocks, edges)
    _check_rows(table, path)
    return table


class _AbsentError(EventsError):
    """There is no such file."""


def _digest(table: EventTable) -> str:
    digest = hashlib.sha256(json.dumps(asdict(table.about), sort_keys=True).encode())
    for name in ("address", "executions"):
        digest.update(np.asarray(table.blocks[name].to_numpy()).tobytes())
    return digest.hexdigest()


def _file(path: Path, schema: pa.Schema) -> tuple[pa.Table, dict[str, Any]]:
    try:
        with (
            open_regular(path, "a table of events", remedy=_MAKES_THEM) as source,
            pq.ParquetFile(source) as file,
        ):
            if file.metadata.num_rows > _MOST_ROWS:
                raise EventsError(f"'{path}' has more than {_MOST_ROWS:,} rows; split the run.")
            about = json.loads((file.schema_arrow.metadata or {}).get(_KEY, b"null"))
            present = set(file.schema_arrow.names)
            missing = [name for name in schema.names if name not in present]
            if not isinstance(about, dict) or about.get("format") != _FORMAT or missing:
                raise EventsError(f"'{path}' is no table of events; {_MAKES_THEM}.")
            columns = file.read(columns=schema.names).select(schema.names)
            columns = columns.cast(schema)
            columns.validate(full=True)
    except ReadError as error:
        raise (_AbsentError if error.absent else EventsError)(str(error)) from None
    except (pa.ArrowException, OSError, ValueError, RecursionError) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise EventsError(
            f"'{path}' cannot be read as a table of events ({reason}); collect it again."
        ) from None
    return columns, about


def _check_about(about: About, path: Path) -> None:
    texts = (about.program, about.program_digest, about.machine)
    if (
        about.source not in get_args(Source)
        or not isinstance(about.period, int)
        or about.period < 1
        or not all(isinstance(text, str) for text in texts)
        or not isinstance(about.crude, bool)
        or not isinstance(about.settings, dict)
    ):
        raise EventsError(f"'{path}' does not say how it was counted; collect it again.")


def _check_rows(table: EventTable, path: Path) -> None:
    """Refuse counts that no run has.

    :raises EventsError: if a cell that must be filled is empty, or a number is out of range.
    """
    for columns in (table.blocks, table.edges):
        for name in columns.column_names:
            column = columns[name]
            optional = name == MAP_BLOCK or (name in EVENTS and column.null_count == len(column))
            if column.null_count and not optional:
                raise EventsError(f"'{path}' has empty cells in {name}; collect it again.")
            if pa.types.is_int64(column.type) and column.null_count == 0:
                values = column.to_numpy()
                if len(values) and (values.min() < 0 or values.max() > LARGEST_COUNT):
                    raise EventsError(
                        f"'{path}' has impossible counts in {name}; collect it again."
                    )
    if not set(table.blocks["exit"].unique().to_pylist()) <= set(EXITS):
        raise EventsError(f"'{path}' has blocks that end in no such way; collect it again.")
