"""Executable sections of an ELF file, and the functions that lie in them.

The functions are those of the symbol table, and of a program also those of its unwind tables, so
that stripped programs are read too.
"""

import bisect
import itertools
import warnings
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import lief

from nestor.cost.elf import block_map
from nestor.cost.elf.block_map import Block, BlockMapError, FunctionMap
from nestor.errors import NestorError

ELF_MAGIC: Final = b"\x7fELF"
LARGEST_OBJECT: Final = 1 << 30
"""Bytes of an object or a program that are read."""
_SECTION_HEADER: Final = 64
"""Bytes of a row in the table of sections."""
_STUBS: Final = ".plt"
"""How the sections of the linker's stubs begin: no compiler wrote their code."""


class ObjectFileError(NestorError):
    """A file whose code cannot be read; the text says what to do."""


class Place(NamedTuple):
    """Where code lies."""

    section: int
    """Its index."""
    offset: int
    """In the section, in bytes."""


@dataclass(frozen=True)
class Section:
    """An executable section; in an object it begins at address 0."""

    start: int
    """Address of its first byte."""
    code: bytes


@dataclass(frozen=True)
class Function:
    """A function by its place in a section."""

    names: tuple[str, ...]
    """Aliases share a place; empty where only unwind tables name it."""
    start: int
    """In its section, in bytes."""
    size: int

    @property
    def name(self) -> str:
        """The first of its names; empty without one."""
        return self.names[0] if self.names else ""


@dataclass(frozen=True)
class MappedRange:
    """Blocks that a map describes, in one piece of a section."""

    place: Place
    """Of the first block."""
    blocks: tuple[Block, ...]


@dataclass(frozen=True)
class MappedPlaces:
    """A function of a map by the places of its ranges; the one with its entry is the first."""

    ranges: tuple[MappedRange, ...]
    description: FunctionMap


@dataclass(frozen=True)
class ElfFile:
    """The code of one file."""

    sections: Mapping[int, Section]
    """By index; without the linker's stubs."""
    functions: Mapping[int, tuple[Function, ...]]
    """By section, in the order of their places. They may overlap (:func:`apart`)."""
    mapped: tuple[MappedPlaces, ...]
    """What basic-block address maps say; empty without a map."""
    map_error: str
    """Why a map could not be read; empty if it could."""


def read(content: bytes) -> ElfFile:
    """Return the code of an ELF file.

    :raises ObjectFileError: if it cannot be read, or is for another CPU.
    """
    lief.logging.disable()  # our own errors say it in a sentence
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # LIEF's, of types that it does not know
        return _read(content)


def apart(functions: tuple[Function, ...]) -> Iterator[Function]:
    """Yield functions, in order of place, cut where the next one begins: no code counts twice."""
    for function, following in itertools.pairwise(functions):
        size = min(function.size, following.start - function.start)
        yield Function(function.names, function.start, size)
    yield functions[-1]


def _read(content: bytes) -> ElfFile:
    binary = lief.ELF.parse(content) if content.startswith(ELF_MAGIC) else None
    if binary is None:
        raise ObjectFileError("it is not an ELF file; name objects, programs or static libraries.")
    if binary.header.machine_type != lief.ELF.ARCH.X86_64:
        raise ObjectFileError("it is not for x86-64; compile it for that, or leave it out.")
    header = binary.header
    table_end = header.section_header_offset + header.numberof_sections * _SECTION_HEADER
    if not header.numberof_sections or table_end > len(content):
        raise ObjectFileError("it is cut short or has no table of sections; build it again.")
    relocatable = header.file_type == lief.ELF.Header.FILE_TYPE.REL
    sections = _sections(binary, content, relocatable)
    functions = _functions(binary, sections, relocatable)
    try:
        return ElfFile(sections, functions, tuple(_maps(binary, sections, relocatable)), "")
    except BlockMapError as error:
        return ElfFile(sections, functions, (), str(error))


def _name(named: Any) -> str:
    """Return the name of a symbol or section; LIEF gives bytes where it is not text."""
    name = named.name
    return name.decode(errors="replace") if isinstance(name, bytes) else str(name)


def _sections(binary: Any, content: bytes, relocatable: bool) -> dict[int, Section]:
    """Return the executable sections by their index, without the linker's stubs.

    :raises ObjectFileError: if the file ends before one of them.
    """
    found = {}
    for index, section in enumerate(binary.sections):
        if not section.has(lief.ELF.Section.FLAGS.EXECINSTR) or section.size == 0:
            continue
        if section.type != lief.ELF.Section.TYPE.PROGBITS or _name(section).startswith(_STUBS):
            continue
        code = content[section.offset : section.offset + section.size]
        if len(code) < section.size:
            raise ObjectFileError("it is cut short; build it again.")
        found[index] = Section(0 if relocatable else section.virtual_address, code)
    return found


def _functions(
    binary: Any, sections: Mapping[int, Section], relocatable: bool
) -> dict[int, tuple[Function, ...]]:
    """Return the functions of each section."""
    names: dict[Place, dict[str, None]] = defaultdict(dict)
    found: dict[Place, int] = {}
    places = _Places(sections)
    for symbol in binary.symbols:
        if symbol.type != lief.ELF.Symbol.TYPE.FUNC or not symbol.shndx or not symbol.size:
            continue
        where = Place(symbol.shndx, symbol.value) if relocatable else places.of(symbol.value)
        if where is not None:
            names[where][_name(symbol)] = None
            found[where] = max(symbol.size, found.get(where, 0))
    for function in () if relocatable else binary.functions:  # from the unwind tables too
        where = places.of(function.address)
        if where is not None and function.size:
            found.setdefault(where, function.size)
    by_section: dict[int, list[Function]] = defaultdict(list)
    for place, size in sorted(found.items()):
        if place.section in sections and 0 <= place.offset < len(sections[place.section].code):
            own = tuple(names.get(place, ()))
            by_section[place.section].append(Function(own, place.offset, size))
    return {index: tuple(functions) for index, functions in by_section.items()}


class _Places:
    """Finds the section of an address."""

    def __init__(self, sections: Mapping[int, Section]):
        self._ordered = sorted((section.start, index) for index, section in sections.items())
        self._sections = sections

    def of(self, address: int) -> Place | None:
        """Return section and offset; None if no code lies there."""
        position = bisect.bisect_right(self._ordered, (address, 1 << 62)) - 1
        if position < 0:
            return None
        start, index = self._ordered[position]
        offset = address - start
        return Place(index, offset) if offset < len(self._sections[index].code) else None


def _maps(
    binary: Any, sections: Mapping[int, Section], relocatable: bool
) -> Iterator[MappedPlaces]:
    """Yield the functions of all maps whose code is in the file.

    :raises BlockMapError: if a map cannot be read.
    """
    maps = [s for s in binary.sections if _name(s).startswith(block_map.SECTION)]
    if not maps:
        return
    addresses = _relocated(binary) if relocatable else {}
    places = _Places(sections)
    for section in maps:
        for function in block_map.parse(bytes(section.content)):
            ranges = []
            for part in function.ranges:
                if relocatable:
                    where = addresses.get((section.offset, part.field))
                else:
                    where = places.of(part.address)
                if where is not None and part.blocks:
                    ranges.append(MappedRange(where, part.blocks))
            if ranges:
                yield MappedPlaces(tuple(ranges), function)


def _relocated(binary: Any) -> dict[tuple[int, int], Place]:
    """Return, by section (its offset in the file) and place, where an object's addresses point."""
    return {
        (relocation.section.offset, relocation.address): Place(
            relocation.symbol.shndx, relocation.symbol.value + relocation.addend
        )
        for relocation in binary.object_relocations
        if relocation.section is not None and relocation.symbol is not None
        if _name(relocation.section).startswith(block_map.SECTION)
    }
