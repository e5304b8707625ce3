"""Read basic-block address maps: sections of type ``SHT_LLVM_BB_ADDR_MAP``.

The compiler writes one with ``-fbasic-block-address-map`` and so says exactly where blocks begin
and end, jump tables and filling included. With ``-mllvm
-pgo-analysis-map=func-entry-count,bb-freq,br-prob`` it adds how often it expects each to run. The
format is that of LLVM's ``docs/Extensions.rst``, versions 2 to 5; anything newer is refused, and
the code is then disassembled instead.
"""

import struct
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

from nestor.errors import NestorError

SECTION: Final = ".llvm_bb_addr_map"
"""The name of the sections; LIEF does not know their type."""

_VERSIONS: Final = range(2, 6)
_WIDE_FEATURES: Final = 5
"""From this version on the features take two bytes."""

_ENTRY_COUNT, _FREQUENCIES, _PROBABILITIES, _RANGES, _NO_BLOCKS, _CALLS, _HASHES, _POST_LINK = (
    1 << bit for bit in range(8)
)
_HAS_ROWS: Final = _FREQUENCIES | _PROBABILITIES
"""Features of which there is a row for each block."""
_FALLS_THROUGH: Final = 1 << 3
"""In what the map says of how a block ends."""
_CERTAIN: Final = 1 << 31
"""The probability 1, in LLVM's fixed point."""
_READABLE_FEATURES: Final = (1 << 8) - 1


class BlockMapError(NestorError):
    """A map that cannot be read."""


class Successor(NamedTuple):
    """A block that may run next."""

    identity: int
    """Of that block."""
    probability: float
    """From 0 to 1."""


class Block(NamedTuple):
    """A block by its place."""

    offset: int
    """From the address of its range, in bytes."""
    size: int
    falls_through: bool
    """What follows may run next: the filling before it, too."""
    identity: int
    """The compiler's number of the block in its function."""
    frequency: int | None = None
    """How often the compiler expects it to run, in units of the function's own; None: not said."""
    successors: tuple[Successor, ...] = ()
    """The blocks that may run next; empty where the map does not say."""


@dataclass(frozen=True)
class Range:
    """Blocks of a function, or of a part of it, that lie in one piece."""

    field: int
    """Where in the section the address stands: in an object, a relocation fills it in."""
    address: int
    """Address of the first block; 0 in an object."""
    blocks: tuple[Block, ...]


@dataclass(frozen=True)
class FunctionMap:
    """What a map says of one function."""

    ranges: tuple[Range, ...]
    """The one with the function's entry first."""
    entry_count: int | None
    """How often the function was entered in the profile, 0 without one; None: not said."""

    @property
    def entry_frequency(self) -> int | None:
        """The frequency of the entry block, in the units of :attr:`Block.frequency`."""
        return next((block.frequency for part in self.ranges for block in part.blocks), None)


def parse(content: bytes) -> list[FunctionMap]:
    """Return the functions of a section.

    :raises BlockMapError: if the section is damaged or of an unknown version.
    """
    try:
        return _Reader(content).functions()
    except (IndexError, struct.error) as error:
        raise BlockMapError("A basic-block address map is cut short; compile again.") from error


class _Reader:
    def __init__(self, content: bytes):
        self._content = content
        self._at = 0

    def functions(self) -> list[FunctionMap]:
        found = []
        while self._at < len(self._content):
            version = self._fixed("<B")
            features = self._fixed("<H" if version >= _WIDE_FEATURES else "<B")
            if version not in _VERSIONS or features & ~_READABLE_FEATURES:
                raise BlockMapError(
                    f"A basic-block address map has version {version} and features {features:#x},"
                    " which cannot be read; compile with LLVM 22."
                )
            several = self._number() if features & _RANGES else 1
            ranges = [self._range(features) for _ in range(several)]
            entry_count = self._number() if features & _ENTRY_COUNT else None
            if features & _HAS_ROWS:
                ranges = [self._with_profile(features, part) for part in ranges]
            found.append(FunctionMap(tuple(ranges), entry_count))
        return found

    def _range(self, features: int) -> Range:
        field = self._at
        address = self._fixed("<Q")
        count = self._number()
        blocks = []
        end = 0  # offsets run on from the end of the block before
        for _ in range(0 if features & _NO_BLOCKS else count):
            identity = self._number()
            start = end + self._number()
            end = start
            for _call in range(self._number() if features & _CALLS else 0):
                end += self._number()
            end += self._number()
            falls_through = bool(self._number() & _FALLS_THROUGH)
            if features & _HASHES:
                self._fixed("<Q")
            blocks.append(Block(start, end - start, falls_through, identity))
        return Range(field, address, tuple(blocks))

    def _with_profile(self, features: int, part: Range) -> Range:
        blocks = []
        for block in part.blocks:
            frequency = self._number() if features & _FREQUENCIES else None
            if features & _POST_LINK:
                self._number()  # the frequency that a profile of the linked program adds
            successors = []
            for _ in range(self._number() if features & _PROBABILITIES else 0):
                identity, numerator = self._number(), self._number()
                if features & _POST_LINK:
                    self._number()
                successors.append(Successor(identity, numerator / _CERTAIN))
            blocks.append(block._replace(frequency=frequency, successors=tuple(successors)))
        return replace(part, blocks=tuple(blocks))

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
