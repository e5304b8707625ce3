"""Blocks of ComPile: rows of bitcode with their licences, compiled at -O2.

The columns are those of the published data set (Grossman and others, "ComPile: A Large IR Dataset
from Production Sources", 2023): content, license_expression, license_source, license_files,
package_source, language. Files are larger than memory, so rows stream by; of a row group that the
filters leave nothing of, the bitcode is never read.
"""

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from nestor.compiler.toolchain import Toolchain
from nestor.cost.sources.collection import Collection
from nestor.cost.sources.compiling import Unit, compile_and_read
from nestor.cost.sources.settings import CompileSettings, Filter
from nestor.cost.sources.speed_object import DEFAULT_OPTIONS
from nestor.errors import NestorError
from nestor.progress import Progress, silent

COLUMNS = (
    "content",
    "license_expression",
    "license_source",
    "license_files",
    "package_source",
    "language",
)
_ROWS_AT_ONCE = 16
_LARGEST = 64 << 20
"""Bytes of bitcode; larger modules are left out, and counted."""


class BitcodeFileError(NestorError):
    """A file that does not hold bitcode in ComPile's form."""


def read(
    path: Path,
    wanted: Filter,
    toolchain: Toolchain,
    settings: CompileSettings,
    into: Collection,
    progress: Progress = silent,
) -> None:
    """Add the blocks of a file to ``into``. Rows that do not compile are counted as failures.

    :raises BitcodeFileError: if the file cannot be read, or lacks a column that is needed.
    """
    with _opened(path) as file:
        present = set(file.schema_arrow.names)
        needed = {"content"}
        needed |= {"license_expression"} if wanted.licences else set()
        needed |= {"language"} if wanted.languages else set()
        if missing := sorted(needed - present):
            raise BitcodeFileError(
                f"'{path}' has no column {', '.join(missing)}; ComPile's files have"
                f" {', '.join(COLUMNS)}."
            )
        groups = file.num_row_groups
        progress(path.name, 0, groups)

        def units() -> Iterator[Unit]:
            for group in range(groups):
                try:
                    yield from _units(file, group, path, wanted, into)
                except (pa.ArrowException, OSError, ValueError) as error:
                    raise _broken(path, error) from error
                progress(path.name, group + 1, groups)

        compile_and_read(units(), toolchain, settings, into, lambda _unit: None)


def _opened(path: Path) -> pq.ParquetFile:
    try:
        return pq.ParquetFile(path)
    except (pa.ArrowException, OSError, ValueError) as error:
        raise _broken(path, error) from error


def _broken(path: Path, error: Exception) -> BitcodeFileError:
    reason = str(error).splitlines()[0] if str(error) else type(error).__name__
    return BitcodeFileError(f"'{path}' cannot be read as parquet ({reason}); fetch it again.")


def _units(
    file: pq.ParquetFile, group: int, path: Path, wanted: Filter, into: Collection
) -> Iterator[Unit]:
    """Yield what is used of one row group."""
    names = set(file.schema_arrow.names)
    about = [n for n in ("license_expression", "language", "package_source") if n in names]
    rows = file.read_row_group(group, columns=about).to_pylist() if about else None
    count = file.metadata.row_group(group).num_rows
    facts: list[dict[str, Any]] = rows if rows else [{}] * count
    taken = [
        wanted.takes(_text(row.get("license_expression")), _text(row.get("language")))
        for row in facts
    ]
    into.filtered += taken.count(False)
    if not any(taken):
        return
    at = 0
    for batch in file.iter_batches(_ROWS_AT_ONCE, row_groups=[group], columns=["content"]):
        for value in batch.column(0):
            row, take = facts[at], taken[at]
            at += 1
            if not take:
                continue
            content = value.as_py()
            if not isinstance(content, bytes) or not 0 < len(content) <= _LARGEST:
                into.failures["a row holds no bitcode, or more than is compiled"] += 1
                continue
            origin = _text(row.get("package_source")) or path.name
            digest = hashlib.sha256(content).hexdigest()
            yield Unit(f"{origin}#{digest[:12]}", digest, DEFAULT_OPTIONS, content)


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None
