"""Read basic-block address maps: sections of type ``SHT_LLVM_BB_ADDR_MAP``.

The compiler writes one with ``-fbasic-block-address-map`` and so says exactly where blocks begin
and end, jump tables and filling included. The format is that of LLVM's ``docs/Extensions.rst``,
versions 2 to 5; anything newer is refused, and the code is then disassembled instead.
"""

import struct
from dataclasses import dataclass
from typing import Final, NamedTuple

from nestor.errors import NestorError

SECTION: Final = ".llvm_bb_addr_map"
"""The name of the sections; LIEF does not know their type."""

_VERSIONS: Final = range(2, 6)
_WIDE_FEATURES: Final = 5
"""From this version on the features take two bytes."""

_ENTRY_COUNT, _FREQUENCIES, _PROBABILITIES, _RANGES, _NO_BLOCKS, _CALLS, _HASHES = (
    1 << bit for bit in range(7)
)
_FALLS_THROUGH: Final = 1 << 3
"""In what the map says of how a block ends."""
_KNOWN_FEATURES: Final = (1 << 7) - 1


class BlockMapError(NestorError):
    """A map that cannot be read."""


class Block(NamedTuple):
    """A block by its place."""

    offset: int
    """From the address of its range, in bytes."""
    size: int
    falls_through: bool
    """What follows may run next: the filling before it, too."""


@dataclass(frozen=True)
class Range:
    """Blocks of a function, or of a part of it, that lie in one piece."""

    field: int
    """Where in the section the address stands: in an object, a relocation fills it in."""
    address: int
    """Address of the first block; 0 in an object."""
    blocks: tuple[Block, ...]


def parse(content: bytes) -> list[Range]:
    """Return all ranges of a section.

    :raises BlockMapError: if the section is damaged or of an unknown version.
    """
    try:
        return _Reader(content).ranges()
    except (IndexError, struct.error) as error:
        raise BlockMapError("A basic-block address map is cut short; compile again.") from error


class _Reader:
    def __init__(self, content: bytes):
        self._content = content
        self._at = 0

    def ranges(self) -> list[Range]:
        found = []
        while self._at < len(self._content):
            version = self._fixed("<B")
            features = self._fixed("<H" if version >= _WIDE_FEATURES else "<B")
            if version not in _VERSIONS or features & ~_KNOWN_FEATURES:
                raise BlockMapError(
                    f"A basic-block address map has version {version} and features {features:#x},"
                    " which cannot be read; compile with LLVM 22."
                )
            several = self._number() if features & _RANGES else 1
            blocks = 0
            for _ in range(several):
                one = self._range(features)
                blocks += len(one.blocks)
                found.append(one)
            self._skip_profile(features, blocks)
        return found

    def _range(self, features: int) -> Range:
        field = self._at
        address = self._fixed("<Q")
        count = self._number()
        blocks = []
        end = 0  # offsets run on from the end of the block before
        for _ in range(0 if features & _NO_BLOCKS else count):
            self._number()  # the block's identity
            start = end + self._number()
            end = start
            for _call in range(self._number() if features & _CALLS else 0):
                end += self._number()
            end += self._number()
            falls_through = bool(self._number() & _FALLS_THROUGH)
            if features & _HASHES:
                self._fixed("<Q")
            blocks.append(Block(start, end - start, falls_through))
        return Range(field, address, tuple(blocks))

    def _skip_profile(self, features: int, blocks: int) -> None:
        if features & _ENTRY_COUNT:
            self._number()
        if not features & (_FREQUENCIES | _PROBABILITIES):
            return
        for _ in range(blocks):
            if features & _FREQUENCIES:
                self._number()
            for _successor in range(self._number() if features & _PROBABILITIES else 0):
                self._number()
                self._number()

    def _fixed(self, layout: str) -> int:
        (value,) = struct.unpack_from(layout, self._content, self._at)
        self._at += struct.calcsize(layout)
        return int(value)

    def _number(self) -> int:
        """Return one number in ULEB128."""
        value = shift = 0
        while True:
            byte = self._content[self._at]
            self._at += 1
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value
            shift += 7
            if shift > 63:
                raise BlockMapError("A basic-block address map is damaged; compile again.")
