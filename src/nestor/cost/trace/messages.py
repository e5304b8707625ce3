"""The protocol buffers of a trace: which machine blocks ran, in order, and the functions' names.

The messages are ``MbbTrace``, ``FunctionMapping`` and ``SerializedMbbs`` of
``compiler_opt/memtrace_costmodel``. A trace repeats few distinct blocks, so their identifiers are
read as bytes and counted before each distinct one is decoded.
"""

import itertools
from collections import Counter, defaultdict
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt
from google.protobuf import descriptor_pool, message_factory
from google.protobuf.descriptor_pb2 import (
    DescriptorProto,
    FieldDescriptorProto,
    FileDescriptorProto,
)
from google.protobuf.message import DecodeError

from nestor.errors import NestorError

_PACKAGE: Final = "nestor.trace"
_NUMBER, _TEXT, _BYTES, _MESSAGE = (
    FieldDescriptorProto.TYPE_UINT32,
    FieldDescriptorProto.TYPE_STRING,
    FieldDescriptorProto.TYPE_BYTES,
    FieldDescriptorProto.TYPE_MESSAGE,
)
_MESSAGES: Final = {
    "MachineBbId": (
        ("function_id", 3, _NUMBER, False),
        ("basic_block_id", 2, _NUMBER, False),
        ("entry_id", 4, _NUMBER, False),
    ),
    "SharedObjectTrace": (
        ("trace_id", 1, _NUMBER, False),
        ("instruction_data", 2, _BYTES, True),
    ),
    # On the wire a message is bytes, so identifiers are counted before they are decoded.
    "MbbTrace": (("mbbs", 1, _BYTES, True), ("shared_object_traces", 2, "SharedObjectTrace", True)),
    # A map is a list of pairs.
    "Pair": (("key", 1, _TEXT, False), ("value", 2, _NUMBER, False)),
    "FunctionMapping": (("function_ids", 1, "Pair", True),),
    "SerializedMbbs": (("mbb_ids", 1, _BYTES, True), ("mbb_bytes", 2, _BYTES, True)),
}
"""Fields by message: name, number, type, whether it repeats."""


class TraceError(NestorError):
    """A trace that cannot be read, or that does not fit the code."""


class EntryId(NamedTuple):
    """An entry into a machine block: its beginning, or the return of one of its calls."""

    function: int | None
    """Index of the function; None: code outside of the mapped program, recorded as it ran."""
    block: int
    """The compiler's number of the block; of recorded code, the number of the recording."""
    entry: int
    """0 for the beginning, N for the return of the N-th call."""


@dataclass(frozen=True)
class Segment:
    """A part of an execution."""

    runs: Mapping[EntryId, int]
    """How often each entry ran."""
    recorded: Mapping[EntryId, tuple[bytes, ...]]
    """The instructions of code outside of the mapped program."""
    order: npt.NDArray[np.int32] | None = field(default=None, compare=False)
    """Which entries ran one after the other, by their places in ``runs``; None: it was not asked
    for."""


def parse_segment(record: bytes, *, ordered: bool = False) -> Segment:
    """Return a segment of the message ``MbbTrace``.

    :param ordered: keep the order of its entries, four bytes for each that ran.
    :raises TraceError: if it is something else.
    """
    message = _parsed("MbbTrace", record)
    recorded = {
        EntryId(None, part.trace_id, 0): tuple(part.instruction_data)
        for part in message.shared_object_traces
    }
    if ordered:
        return _ordered(message.mbbs, recorded)
    runs: Counter[EntryId] = Counter()
    for identifier, count in Counter(message.mbbs).items():
        runs[_entry_id(identifier)] += count
    return Segment(runs, recorded)


def _ordered(
    identifiers: Sequence[bytes], recorded: Mapping[EntryId, tuple[bytes, ...]]
) -> Segment:
    """Return a segment with its order, from identifiers in the order in which they ran."""
    places: defaultdict[bytes, int] = defaultdict(itertools.count().__next__)
    order = np.fromiter(map(places.__getitem__, identifiers), np.int32, len(identifiers))
    entries = [_entry_id(identifier) for identifier in places]
    runs = dict.fromkeys(entries, 0)
    for entry, count in zip(entries, np.bincount(order).tolist(), strict=True):
        runs[entry] += count
    if len(runs) < len(entries):  # one entry may be written as bytes in several ways
        place_of = {entry: place for place, entry in enumerate(runs)}
        order = np.array([place_of[entry] for entry in entries], np.int32)[order]
    return Segment(runs, recorded, order)


def transitions(segment: Segment, among: Container[EntryId]) -> dict[tuple[EntryId, EntryId], int]:
    """Return how often an entry ran right after another one, by the two.

    :param segment: with its order.
    :param among: entries that count; one that does not is passed over as if it had not run.
    """
    assert segment.order is not None
    entries = list(segment.runs)
    count = np.fromiter((entry in among for entry in entries), np.bool_, len(entries))
    order = segment.order[count[segment.order]].astype(np.int64)
    found, times = np.unique(order[:-1] * len(entries) + order[1:], return_counts=True)
    before, after = np.divmod(found, max(len(entries), 1))
    ends = zip(before.tolist(), after.tolist(), times.tolist(), strict=True)
    return {(entries[one], entries[other]): number for one, other, number in ends}


def parse_function_index(record: bytes) -> dict[str, int]:
    """Return the index of each function of the message ``FunctionMapping``, by name.

    :raises TraceError: if it is something else.
    """
    return {pair.key: pair.value for pair in _parsed("FunctionMapping", record).function_ids}


def parse_serialized(record: bytes) -> dict[EntryId, bytes]:
    """Return the code of each entry of the message ``SerializedMbbs``.

    :raises TraceError: if it is something else.
    """
    message = _parsed("SerializedMbbs", record)
    if len(message.mbb_ids) != len(message.mbb_bytes):
        raise TraceError("Serialized blocks have other numbers of identifiers and of codes.")
    return {
        _entry_id(identifier): code
        for identifier, code in zip(message.mbb_ids, message.mbb_bytes, strict=True)
    }


def segment_record(identifiers: Iterable[bytes]) -> bytes:
    """Return the message ``MbbTrace`` of entries in the order in which they ran.

    :param identifiers: of :func:`identifier_record`.
    """
    message = _class("MbbTrace")()
    message.mbbs.extend(identifiers)
    return bytes(message.SerializeToString())


def identifier_record(entry: EntryId) -> bytes:
    """Return the message ``MachineBbId`` of an entry into a function of the program."""
    function, block, number = entry
    message = _class("MachineBbId")(function_id=function, basic_block_id=block, entry_id=number)
    return bytes(message.SerializeToString(deterministic=True))


def function_index_record(indices: Mapping[str, int]) -> bytes:
    """Return the message ``FunctionMapping``."""
    message = _class("FunctionMapping")()
    for name, index in sorted(indices.items()):
        message.function_ids.add(key=name, value=index)
    return bytes(message.SerializeToString(deterministic=True))


def serialized_record(codes: Mapping[EntryId, bytes]) -> bytes:
    """Return the message ``SerializedMbbs``."""
    message = _class("SerializedMbbs")()
    for entry, code in codes.items():
        message.mbb_ids.append(identifier_record(entry))
        message.mbb_bytes.append(code)
    return bytes(message.SerializeToString(deterministic=True))


def _entry_id(identifier: bytes) -> EntryId:
    message = _parsed("MachineBbId", identifier)
    function = message.function_id if message.HasField("function_id") else None
    return EntryId(function, message.basic_block_id, message.entry_id)


def _parsed(name: str, record: bytes) -> Any:
    try:
        return _class(name).FromString(record)
    except DecodeError as error:
        raise TraceError(f"A record is no message of the kind {name} ({error}).") from None


def _file() -> FileDescriptorProto:
    file = FileDescriptorProto(name="nestor_trace.proto", package=_PACKAGE, syntax="proto2")
    for name, fields in _MESSAGES.items():
        file.message_type.append(DescriptorProto(name=name, field=_fields(fields)))
    return file


def _fields(fields: Sequence[tuple[str, int, Any, bool]]) -> list[FieldDescriptorProto]:
    found = []
    for name, number, kind, repeated in fields:
        label = (
            FieldDescriptorProto.LABEL_REPEATED if repeated else FieldDescriptorProto.LABEL_OPTIONAL
        )
        field = FieldDescriptorProto(name=name, number=number, label=label)
        if isinstance(kind, str):
            field.type, field.type_name = _MESSAGE, f".{_PACKAGE}.{kind}"
        else:
            field.type = kind
        found.append(field)
    return found


_POOL: Final = descriptor_pool.DescriptorPool()
_POOL.Add(_file())


def _class(name: str) -> Any:
    return message_factory.GetMessageClass(_POOL.FindMessageTypeByName(f"{_PACKAGE}.{name}"))
