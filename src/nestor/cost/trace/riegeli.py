"""Files of records in the Riegeli format, as ``riegeli::RecordReader`` and ``RecordWriter`` use it.

A file is a sequence of chunks, each with records, interrupted by a header at every multiple of
64 KiB. Simple chunks are read, uncompressed or compressed with Brotli, Zstandard or Snappy, and
written with Zstandard. Headers are checked by their hashes; data are checked by their sizes.
"""

import struct
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO, Final, NamedTuple

import pyarrow as pa

from nestor.cost.trace.highwayhash import highwayhash64
from nestor.errors import NestorError
from nestor.files import replacing

_KEY: Final = struct.unpack("<4Q", b"Riegeli/records\n" * 2)
_BLOCK: Final = 1 << 16
_BLOCK_HEADER: Final = 24
_USABLE: Final = _BLOCK - _BLOCK_HEADER
_CHUNK_HEADER: Final = 40
_LARGEST_CHUNK: Final = 1 << 30
"""Bytes, packed or not."""
_CHUNK_TARGET: Final = 1 << 20
"""Bytes of records after which the writer begins a new chunk."""
_SIGNATURE, _SIMPLE, _TRANSPOSED = b"s", b"r", b"t"
_CODECS: Final = {ord("b"): "brotli", ord("z"): "zstd", ord("s"): "snappy"}


class RiegeliError(NestorError):
    """A file that is not of this format, or damaged."""


class _Header(NamedTuple):
    data_size: int
    kind: bytes
    records: int
    records_size: int


def read_records(path: Path) -> Iterator[bytes]:
    """Yield the records of a file.

    :raises RiegeliError: if the file cannot be read, or is of another format.
    """
    try:
        with path.open("rb") as file:
            chunks = _Reader(file)
            first = True
            while (chunk := chunks.read()) is not None:
                header, data = chunk
                if first and header.kind != _SIGNATURE:
                    raise RiegeliError("it does not begin with a signature")
                first = False
                if header.kind == _TRANSPOSED:
                    raise RiegeliError("it has transposed chunks; write it without 'transpose'")
                if header.kind == _SIMPLE:
                    yield from _records(header, data)
            if first:
                raise RiegeliError("it is too short for a signature")
    except OSError as error:
        raise RiegeliError(f"'{path}' cannot be read ({error.strerror}).") from None
    except RiegeliError as error:
        raise RiegeliError(f"'{path}' is no file of Riegeli records: {error}.") from None


def write_records(path: Path, records: Iterable[bytes]) -> None:
    """Write a file of records, whole or not at all.

    :raises OSError: if it cannot be written.
    """
    with replacing(path) as scratch, scratch.open("wb") as file:
        writer = _Writer(file)
        writer.write(_SIGNATURE, 0, 0, b"")
        batch: list[bytes] = []
        size = 0
        for record in records:
            batch.append(record)
            size += len(record)
            if size >= _CHUNK_TARGET:
                writer.write_batch(batch)
                batch, size = [], 0
        if batch:
            writer.write_batch(batch)


def _hash(data: bytes) -> int:
    return highwayhash64(data, _KEY)


def _chunk_end(begin: int, data_size: int, records: int) -> int:
    """Return where a chunk ends, with its padding and the block headers that interrupt it."""
    size = _CHUNK_HEADER + data_size
    headers = (size + (begin + _USABLE - 1) % _BLOCK) // _USABLE
    at_least = begin + records
    left_in_block = _BLOCK - 1 - (at_least + _BLOCK - 1) % _BLOCK
    return max(
        begin + size + headers * _BLOCK_HEADER, at_least + max(left_in_block - (_USABLE - 1), 0)
    )


class _Reader:
    """Reads chunks in order, past the headers of blocks."""

    def __init__(self, file: IO[bytes]):
        self._file = file
        self._at = 0

    def read(self) -> tuple[_Header, bytes] | None:
        """Return the next chunk; None at the end of the file."""
        begin = self._at
        head = self._bytes(_CHUNK_HEADER)
        if not head:
            return None
        if len(head) < _CHUNK_HEADER:
            raise RiegeliError("it is cut short")
        expected, data_size, _, kind, count, records_size = struct.unpack("<QQQc7sQ", head)
        if _hash(head[8:]) != expected:
            raise RiegeliError("the header of a chunk does not match its hash")
        header = _Header(data_size, kind, int.from_bytes(count, "little"), records_size)
        if max(data_size, records_size) > _LARGEST_CHUNK:
            raise RiegeliError(f"a chunk is larger than {_LARGEST_CHUNK:,} bytes")
        data = self._bytes(data_size)
        if len(data) < data_size:
            raise RiegeliError("it is cut short")
        self._at = _chunk_end(begin, data_size, header.records)
        self._file.seek(self._at)
        return header, data

    def _bytes(self, size: int) -> bytes:
        parts = []
        while size > 0:
            if self._at % _BLOCK == 0:
                self._file.seek(_BLOCK_HEADER, 1)
                self._at += _BLOCK_HEADER
            part = self._file.read(min(size, _BLOCK - self._at % _BLOCK))
            if not part:
                break
            parts.append(part)
            size -= len(part)
            self._at += len(part)
        return b"".join(parts)


class _Writer:
    """Writes chunks in order, with the headers of blocks among them."""

    def __init__(self, file: IO[bytes]):
        self._file = file
        self._at = 0

    def write_batch(self, records: list[bytes]) -> None:
        """Write a simple chunk."""
        sizes = _packed(b"".join(_varint(len(record)) for record in records))
        values = _packed(b"".join(records))
        data = b"z" + _varint(len(sizes)) + sizes + values
        self.write(_SIMPLE, len(records), sum(map(len, records)), data)

    def write(self, kind: bytes, records: int, records_size: int, data: bytes) -> None:
        rest = struct.pack(
            "<QQc7sQ", len(data), _hash(data), kind, records.to_bytes(7, "little"), records_size
        )
        begin, end = self._at, _chunk_end(self._at, len(data), records)
        chunk = memoryview(struct.pack("<Q", _hash(rest)) + rest + data)
        while self._at < end:
            if self._at % _BLOCK == 0:
                distances = struct.pack("<QQ", self._at - begin, end - self._at)
                self._file.write(struct.pack("<Q", _hash(distances)) + distances)
                self._at += _BLOCK_HEADER
            room = min(_BLOCK - self._at % _BLOCK, end - self._at)
            self._file.write(bytes(chunk[:room]).ljust(room, b"\0"))
            chunk = chunk[room:]
            self._at += room


def _records(header: _Header, data: bytes) -> Iterator[bytes]:
    if not data:
        raise RiegeliError("a chunk is empty")
    codec = data[0]
    sizes_size, at = _number(data, 1)
    sizes = _unpacked(codec, data[at : at + sizes_size])
    values = _unpacked(codec, data[at + sizes_size :])
    start = position = 0
    for _ in range(header.records):
        size, position = _number(sizes, position)
        if start + size > len(values):
            raise RiegeliError("the sizes of records do not fit their chunk")
        yield values[start : start + size]
        start += size


def _unpacked(codec: int, data: bytes) -> bytes:
    """Return decompressed bytes, whose size comes first."""
    if codec == 0:
        return data
    if codec not in _CODECS:
        raise RiegeliError(f"a chunk is compressed in the unknown way {codec}")
    size, at = _number(data, 0)
    if size > _LARGEST_CHUNK:
        raise RiegeliError(f"a chunk is larger than {_LARGEST_CHUNK:,} bytes")
    if size == 0:
        return b""
    try:
        return bytes(pa.decompress(data[at:], size, codec=_CODECS[codec], asbytes=True))
    except (OSError, pa.ArrowException) as error:
        raise RiegeliError(f"a chunk cannot be decompressed ({error})") from None


def _packed(data: bytes) -> bytes:
    return _varint(len(data)) + bytes(pa.compress(data, codec="zstd", asbytes=True))


def _number(data: bytes, at: int) -> tuple[int, int]:
    """Return the varint at a place, and the place behind it."""
    value = shift = 0
    while at < len(data) and shift < 64:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7
    raise RiegeliError("a number is damaged")


def _varint(value: int) -> bytes:
    found = bytearray()
    while value >= 0x80:
        found.append(value & 0x7F | 0x80)
        value >>= 7
    found.append(value)
    return bytes(found)
