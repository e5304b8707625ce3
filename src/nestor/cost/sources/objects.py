"""Blocks of object files, programs and libraries (ELF, x86-64).

The functions are those of the symbol table, and of a program also those of its unwind tables, so
that stripped programs are read too; an executable section that names none is taken as one function.
Where the file has a basic-block address map the blocks are those of the map, elsewhere they come
from disassembly (``splitting``).
"""

import bisect
import itertools
import warnings
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import lief

from nestor.corpus.archive import ArchiveError, is_archive, members
from nestor.cost.sources import block_map
from nestor.cost.sources.block_map import Block, BlockMapError
from nestor.cost.sources.collection import Collection
from nestor.cost.sources.splitting import Pieces, split
from nestor.errors import NestorError
from nestor.files import read_regular

ELF_MAGIC: Final = b"\x7fELF"
LARGEST_OBJECT: Final = 1 << 30
"""Bytes of an object or a program that are read."""
_SECTION_HEADER: Final = 64
"""Bytes of a row in the table of sections."""
_STUBS: Final = ".plt"
"""How the sections of the linker's stubs begin: no compiler wrote their code."""


class ObjectFileError(NestorError):
    """A file whose code cannot be read; the text says what to do."""


@dataclass(frozen=True)
class _Section:
    """An executable section; in an object it begins at address 0."""

    start: int
    code: bytes


@dataclass(frozen=True)
class _Function:
    name: str
    start: int
    """In its section."""
    size: int


def read(path: Path, into: Collection, name: str | None = None) -> None:
    """Add the blocks of a file to ``into``; ``name`` says in the table where they are from.

    Members of a library that are not x86-64 objects are counted as failures.

    :raises NestorError: if the file cannot be read, or is nothing of the kind.
    """
    source = name or str(path)
    try:
        archive = path.is_file() and is_archive(_head(path))
    except OSError as error:
        raise ObjectFileError(f"'{path}' cannot be read ({error.strerror}).") from error
    if archive:
        _read_library(path, source, into)
        return
    content = read_regular(path, "code", limit=LARGEST_OBJECT)
    try:
        read_object(content, source, into)
    except ObjectFileError as error:
        raise ObjectFileError(f"'{path}': {error}") from error


def _read_library(path: Path, source: str, into: Collection) -> None:
    try:
        for member, body in members(path):
            try:
                read_object(body, f"{source}({member})", into)
            except ObjectFileError as error:
                into.failures[str(error)] += 1
    except ArchiveError as error:
        raise ObjectFileError(f"'{path}' {error}; build it again.") from error


def _head(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(8)


def is_code(path: Path) -> bool:
    """Tell whether a file begins like an object, a program or a library."""
    try:
        head = _head(path) if path.is_file() else b""  # a named pipe would wait for a writer
    except OSError:
        return False
    return head.startswith(ELF_MAGIC) or is_archive(head)


def read_object(content: bytes, source: str, into: Collection) -> None:
    """Add the blocks of one ELF file to ``into``.

    :raises ObjectFileError: if it cannot be read, or is for another CPU.
    """
    lief.logging.disable()  # our own errors say it in a sentence
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # LIEF's, of types that it does not know
        _read_object(content, source, into)


def _read_object(content: bytes, source: str, into: Collection) -> None:
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
        maps = _maps(binary, sections, relocatable)
    except BlockMapError as error:
        into.failures[str(error)] += 1
        maps = {}
    into.files += 1
    for index, section in sections.items():
        named = functions.get(index) or [_Function("", 0, len(section.code))]
        mapped = maps.get(index, {})
        for function in _apart(named):
            end = function.start + function.size
            ranges = mapped.get(function.start)
            code = section.code[function.start : end]
            if ranges is None:
                pieces = split(code)
            else:
                pieces = _cut(code, ranges)
                into.mapped += 1
            into.add_function(pieces, source, function.name)


def _name(named: Any) -> str:
    """Return the name of a symbol or section; LIEF gives bytes where it is not text."""
    name = named.name
    return name.decode(errors="replace") if isinstance(name, bytes) else str(name)


def _sections(binary: Any, content: bytes, relocatable: bool) -> dict[int, _Section]:
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
        found[index] = _Section(0 if relocatable else section.virtual_address, code)
    return found


def _functions(
    binary: Any, sections: Mapping[int, _Section], relocatable: bool
) -> dict[int, list[_Function]]:
    """Return the functions of each section."""
    names: dict[tuple[int, int], str] = {}
    found: dict[tuple[int, int], int] = {}
    place = _Places(sections)
    for symbol in binary.symbols:
        if symbol.type != lief.ELF.Symbol.TYPE.FUNC or not symbol.shndx or not symbol.size:
            continue
        where = (symbol.shndx, symbol.value) if relocatable else place.of(symbol.value)
        if where is not None:
            names.setdefault(where, _name(symbol))  # aliases share a place
            found[where] = max(symbol.size, found.get(where, 0))
    for function in () if relocatable else binary.functions:  # from the unwind tables too
        where = place.of(function.address)
        if where is not None and function.size:
            found.setdefault(where, function.size)
    by_section = defaultdict(list)
    for (index, start), size in sorted(found.items()):
        if index in sections and 0 <= start < len(sections[index].code):
            by_section[index].append(_Function(names.get((index, start), ""), start, size))
    return by_section


def _apart(functions: list[_Function]) -> Iterator[_Function]:
    """Yield functions, in order of place, cut where the next one begins: no code counts twice."""
    for function, following in itertools.pairwise(functions):
        size = min(function.size, following.start - function.start)
        yield _Function(function.name, function.start, size)
    yield functions[-1]


class _Places:
    """Finds the section of an address."""

    def __init__(self, sections: Mapping[int, _Section]):
        self._ordered = sorted((section.start, index) for index, section in sections.items())
        self._sections = sections

    def of(self, address: int) -> tuple[int, int] | None:
        """Return section and offset; None if no code lies there."""
        position = bisect.bisect_right(self._ordered, (address, 1 << 62)) - 1
        if position < 0:
            return None
        start, index = self._ordered[position]
        offset = address - start
        return (index, offset) if offset < len(self._sections[index].code) else None


def _maps(
    binary: Any, sections: Mapping[int, _Section], relocatable: bool
) -> dict[int, dict[int, tuple[Block, ...]]]:
    """Return, by section and by the place of a function in it, its blocks.

    :raises BlockMapError: if a map cannot be read.
    """
    found: dict[int, dict[int, tuple[Block, ...]]] = defaultdict(dict)
    maps = [s for s in binary.sections if _name(s).startswith(block_map.SECTION)]
    if not maps:
        return found
    addresses = _relocated(binary) if relocatable else {}
    place = _Places(sections)
    for section in maps:
        for part in block_map.parse(bytes(section.content)):
            if relocatable:
                where = addresses.get((section.offset, part.field))
            else:
                where = place.of(part.address)
            if where is not None and part.blocks:
                found[where[0]][where[1]] = part.blocks
    return found


def _relocated(binary: Any) -> dict[tuple[int, int], tuple[int, int]]:
    """Return, by section (its offset in the file) and place, where an object's addresses point."""
    return {
        (relocation.section.offset, relocation.address): (
            relocation.symbol.shndx,
            relocation.symbol.value + relocation.addend,
        )
        for relocation in binary.object_relocations
        if relocation.section is not None and relocation.symbol is not None
        if _name(relocation.section).startswith(block_map.SECTION)
    }


def _cut(code: bytes, blocks: tuple[Block, ...]) -> Pieces:
    """Return the blocks of a map, cut further at calls, which LLVM's own blocks run through.

    The filling that aligns the next block belongs to the block that runs through it.
    """
    pieces = Pieces()
    starts = [block.offset for block in blocks[1:]]
    for block, following in itertools.zip_longest(blocks, starts):
        end = block.offset + block.size
        if block.falls_through and following is not None:
            end = max(end, following)
        part = split(code[block.offset : end])
        pieces.blocks += part.blocks
        pieces.empty += part.empty
        pieces.undecodable += part.undecodable
    return pieces
