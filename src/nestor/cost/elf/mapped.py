"""Functions as the compiler's basic-block address map describes them, with their machine code.

An object that was compiled with :data:`FLAGS` carries all that a cost of its functions needs: where
blocks begin and end, how often the compiler expects each to run, and where they go next. The flags
add sections and change no instruction.
"""

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from nestor.cost.elf import binary
from nestor.cost.elf.binary import LARGEST_OBJECT, ElfFile, MappedPlaces, ObjectFileError
from nestor.cost.elf.block_map import Block, Successor
from nestor.files import read_regular

FLAGS: Final = (
    "-fbasic-block-address-map",
    "-mllvm",
    "-pgo-analysis-map=func-entry-count,bb-freq,br-prob",
)
"""What clang needs to write maps with frequencies."""


@dataclass(frozen=True)
class MappedBlock:
    """A basic block as the compiler sees it: calls are part of it, and so is its last jump."""

    code: bytes
    filling: bytes
    """What lies between it and the next block and is executed on the way there."""
    address: int
    """Of its first byte; in an object, from the beginning of its section."""
    identity: int
    """The compiler's number of the block in its function."""
    frequency: float | None
    """Expected runs for each time that the function is entered; None: the map does not say."""
    successors: tuple[Successor, ...]


@dataclass(frozen=True)
class MappedFunction:
    """A function with the blocks of all of its parts."""

    names: tuple[str, ...]
    """Aliases share code; empty where the file names none."""
    entry_count: int | None
    """How often the profile says that it was entered, 0 without one; None: the map does not say."""
    blocks: tuple[MappedBlock, ...]
    """In the order of the map; the first is the entry."""

    @property
    def name(self) -> str:
        """The first of its names; empty without one."""
        return self.names[0] if self.names else ""


def read(path: Path, *, frequencies: bool = False) -> tuple[MappedFunction, ...]:
    """Return the functions that the maps of a file describe.

    :param frequencies: the maps must say how often each block runs.
    :raises NestorError: if the file cannot be read, or has no such map.
    """
    content = read_regular(path, "code", limit=LARGEST_OBJECT)
    try:
        return functions(content, frequencies=frequencies)
    except ObjectFileError as error:
        raise ObjectFileError(f"'{path}': {error}") from error


def functions(content: bytes, *, frequencies: bool = False) -> tuple[MappedFunction, ...]:
    """Return the functions that the maps of an object or a program describe, in their order.

    :param frequencies: the maps must say how often each block runs.
    :raises ObjectFileError: if the file cannot be read, or has code and no such map.
    """
    found = binary.read(content)
    if found.map_error:
        raise ObjectFileError(found.map_error)
    if found.sections and not found.mapped:
        raise ObjectFileError(
            f"it has no basic-block address map; compile it with {' '.join(FLAGS)}."
        )
    names = {
        (index, function.start): function.names
        for index, lying_in_it in found.functions.items()
        for function in lying_in_it
    }
    listed = tuple(
        MappedFunction(
            names.get(one.ranges[0].place, ()),
            one.description.entry_count,
            tuple(_blocks(found, one)),
        )
        for one in found.mapped
    )
    if frequencies and any(block.frequency is None for one in listed for block in one.blocks):
        raise ObjectFileError(
            f"its basic-block address map has no frequencies; compile it with {' '.join(FLAGS)}."
        )
    return listed


def _blocks(found: ElfFile, function: MappedPlaces) -> Iterator[MappedBlock]:
    entry = function.description.entry_frequency
    for part in function.ranges:
        section = found.sections.get(part.place.section)
        if section is None:
            raise ObjectFileError("its basic-block address map names no code; build it again.")
        code = section.code[part.place.offset :]
        for block, following in itertools.zip_longest(part.blocks, part.blocks[1:]):
            end = block.offset + block.size
            if end > len(code):
                raise ObjectFileError("its basic-block address map ends behind the code.")
            executed = block.falls_through and following is not None
            yield MappedBlock(
                code[block.offset : end],
                code[end : following.offset] if executed else b"",
                section.start + part.place.offset + block.offset,
                block.identity,
                _relative(block, entry),
                block.successors,
            )


def _relative(block: Block, entry: int | None) -> float | None:
    if block.frequency is None or entry is None:
        return None
    return block.frequency / max(entry, 1)  # 0 where the profile never saw the function
