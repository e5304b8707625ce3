"""FlatBuffers, as much of the format as a model needs: a writer of trees, a reader that checks.

A table is its fields by number. The reader is for files that may come from anywhere: every offset
and length is compared with the size of the file before it is used, and nothing is followed further
than a caller asks, so that no file takes long or much memory.
"""

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from nestor.errors import NestorError

DATA_ALIGNMENT: Final = 16
"""Of vectors of bytes: what TFLite wants of tensors' data."""


class FlatbufferError(NestorError):
    """The bytes are not a FlatBuffer, or were cut short or damaged."""


@dataclass(frozen=True)
class Number:
    """A number in a table; ``format`` is that of :mod:`struct`: ``b``, ``B``, ``i``, ``I``."""

    format: str
    value: int


@dataclass(frozen=True)
class Numbers:
    """A vector of numbers of the same ``format``: ``i`` or ``f``."""

    format: str
    values: Sequence[float]


Node = Mapping[int, "Number | Numbers | bytes | str | Node | Sequence[Node]"]
"""A table: the number of each field → what it holds; ``bytes`` are a vector of bytes."""


def encode(root: Node, identifier: bytes) -> bytes:
    """Return the file whose root table is ``root``; the bytes depend on the arguments alone.

    :param identifier: four bytes that say what kind of file it is.
    """
    writer = _Writer()
    writer.data += struct.pack("<I", 0) + identifier
    writer.point(0, root)
    writer.align(4)
    return bytes(writer.data)


class _Writer:
    """Writes each object behind those that point to it, since offsets count forward."""

    def __init__(self) -> None:
        self.data = bytearray()

    def align(self, size: int, before: int = 0) -> None:
        """Append zeros until what follows ``before`` more bytes lies at a multiple of ``size``."""
        self.data += b"\0" * (-(len(self.data) + before) % size)

    def point(self, place: int, target: object) -> None:
        """Write ``target`` and put the offset to it at ``place``."""
        start = self._write(target)
        struct.pack_into("<I", self.data, place, start - place)

    def _write(self, target: object) -> int:
        """Write an object and return where it begins."""
        if isinstance(target, str):
            content = target.encode()
            self.align(4)
            start = len(self.data)
            self.data += struct.pack("<I", len(content)) + content + b"\0"
            return start
        if isinstance(target, bytes):
            self.align(DATA_ALIGNMENT, before=4)
            start = len(self.data)
            self.data += struct.pack("<I", len(target)) + target
            return start
        if isinstance(target, Numbers):
            self.align(4)
            start = len(self.data)
            values = struct.pack(f"<{len(target.values)}{target.format}", *target.values)
            self.data += struct.pack("<I", len(target.values)) + values
            return start
        if isinstance(target, Mapping):
            return self._table(target)
        assert isinstance(target, Sequence)
        self.align(4)
        start = len(self.data)
        self.data += struct.pack("<I", len(target)) + b"\0" * (4 * len(target))
        for index, each in enumerate(target):
            self.point(start + 4 + 4 * index, each)
        return start

    def _table(self, fields: Node) -> int:
        """Write a table with its own description before it."""
        size, places = 4, {}
        for number, value in fields.items():
            width = struct.calcsize(value.format) if isinstance(value, Number) else 4
            size += -size % width
            places[number] = size
            size += width
        count = max(fields, default=-1) + 1
        description = [4 + 2 * count, size, *(places.get(number, 0) for number in range(count))]
        words = struct.pack(f"<{len(description)}H", *description)
        self.align(4, before=len(words))
        self.data += words
        start = len(self.data)
        self.data += struct.pack("<i", len(words)) + b"\0" * (size - 4)
        for number, value in fields.items():
            if isinstance(value, Number):
                struct.pack_into(f"<{value.format}", self.data, start + places[number], value.value)
        for number, value in fields.items():
            if not isinstance(value, Number):
                self.point(start + places[number], value)
        return start


class Table:
    """A table of a file; fields are read when they are asked for.

    All methods raise :class:`FlatbufferError` where the file does not hold what they look for.
    """

    def __init__(self, data: bytes, start: int) -> None:
        """Take the table that begins at ``start``."""
        self._data = data
        self._start = start
        (distance,) = _unpack(data, start, "i")
        self._description = start - distance
        size, _ = _unpack(data, self._description, "HH")
        self._count = max(0, (size - 4) // 2)

    def number(self, field: int, form: str, default: int = 0) -> int:
        """Return a number; its default where the file does not have it."""
        place = self._place(field)
        return default if place is None else int(_unpack(self._data, place, form)[0])

    def table(self, field: int) -> "Table | None":
        """Return a table."""
        place = self._place(field)
        return None if place is None else Table(self._data, self._follow(place))

    def tables(self, field: int) -> list["Table"]:
        """Return a vector of tables; empty where there is none."""
        start, count = self._vector(field, 4)
        places = range(start, start + 4 * count, 4)
        return [Table(self._data, self._follow(place)) for place in places]

    def numbers(self, field: int, form: str) -> tuple[float, ...]:
        """Return a vector of numbers; empty where there is none."""
        start, count = self._vector(field, struct.calcsize(f"<{form}"))
        return _unpack(self._data, start, f"{count}{form}") if count else ()

    def data(self, field: int) -> bytes:
        """Return a vector of bytes, or the bytes of a string; empty where there is none."""
        start, count = self._vector(field, 1)
        return self._data[start : start + count]

    def _place(self, field: int) -> int | None:
        if field >= self._count:
            return None
        (offset,) = _unpack(self._data, self._description + 4 + 2 * field, "H")
        return self._start + int(offset) if offset else None

    def _follow(self, place: int) -> int:
        (offset,) = _unpack(self._data, place, "I")
        return place + int(offset)

    def _vector(self, field: int, width: int) -> tuple[int, int]:
        """Return where the elements of a vector begin, and how many there are."""
        place = self._place(field)
        if place is None:
            return 0, 0
        start = self._follow(place)
        (count,) = _unpack(self._data, start, "I")
        if start + 4 + count * width > len(self._data):
            raise FlatbufferError("it is cut short or damaged")
        return start + 4, int(count)


def root_of(data: bytes, identifier: bytes) -> Table:
    """Return the root table of a file.

    :param identifier: what its bytes 4 to 7 must be.
    :raises FlatbufferError: if they are something else, or there is no table.
    """
    if data[4:8] != identifier:
        raise FlatbufferError("it is no TFLite model")
    (start,) = _unpack(data, 0, "I")
    return Table(data, int(start))


def _unpack(data: bytes, place: int, form: str) -> tuple[Any, ...]:
    size = struct.calcsize(f"<{form}")
    if place < 0 or place + size > len(data):
        raise FlatbufferError("it is cut short or damaged")
    return struct.unpack_from(f"<{form}", data, place)
