"""Find the code that a trace runs: a linked program, or the objects of a compiled corpus."""

import json
from collections.abc import Iterator
from pathlib import Path

from nestor.cost.elf import mapped
from nestor.cost.elf.mapped import MappedFunction
from nestor.cost.trace.messages import (
    EntryId,
    Segment,
    TraceError,
    parse_function_index,
    parse_segment,
    parse_serialized,
)
from nestor.cost.trace.riegeli import read_records
from nestor.files import read_regular_text

_OBJECT_SUFFIX = ".bc.o"
"""What a trainer appends to the name of a module for its object."""


def function_index(path: Path) -> dict[str, int]:
    """Return the index of each function in a file of one record, by name.

    :raises NestorError: if it is of another kind.
    """
    return parse_function_index(_only_record(path))


def serialized_codes(path: Path) -> dict[EntryId, bytes]:
    """Return the code of the entries in a file of one record.

    :raises NestorError: if it is of another kind.
    """
    return parse_serialized(_only_record(path))


def segments(path: Path, *, ordered: bool = False) -> Iterator[Segment]:
    """Yield the segments of a trace.

    :param ordered: keep the order of their entries.
    :raises NestorError: if it is of another kind.
    """
    return (parse_segment(record, ordered=ordered) for record in read_records(path))


def corpus_functions(description: Path) -> Iterator[MappedFunction]:
    """Yield the mapped functions of all objects of a compiled corpus.

    :param description: its ``corpus_description.json``; the object of a module lies beside it,
        under the module's name and ``.bc.o``.
    :raises NestorError: if it is of another kind, or an object is absent or has no map.
    """
    try:
        modules = json.loads(read_regular_text(description, "a corpus description"))["modules"]
        paths = [description.parent / f"{name}{_OBJECT_SUFFIX}" for name in map(str, modules)]
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise TraceError(
            f"'{description}' is no corpus description with a list of 'modules' ({error!r})."
        ) from None
    for path in paths:
        yield from mapped.read(path)


def _only_record(path: Path) -> bytes:
    records = read_records(path)
    first = next(records, None)
    if first is None:
        raise TraceError(f"'{path}' has no record.")
    return first
