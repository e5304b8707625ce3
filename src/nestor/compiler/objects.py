"""Measure object files and linked programs: bytes by section class and by function.

*Loadable bytes* are what a program's pages and a download pay for and a policy can change:
code, constants and unwind tables. Debug information, symbols, relocations and zero-filled data
do not count. The classes are those of issue trackers' ``size`` tables: text, rodata, eh_frame,
eh_frame_hdr and gcc_except_table, whatever suffix ``-ffunction-sections`` gave them.
"""

import bisect
import struct
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from nestor.compiler import elf
from nestor.compiler.elf import Elf, ElfError, Section
from nestor.errors import NestorError

CLASSES = (".text", ".rodata", ".eh_frame", ".eh_frame_hdr", ".gcc_except_table")
"""Section names (before any suffix) whose bytes are loadable."""

_EH_HDR_BYTES_PER_FUNCTION = 8
"""A row of the binary search table in ``.eh_frame_hdr`` (LSB, Exception Frames)."""


class ObjectError(NestorError):
    """A file is no ELF object that can be measured."""


@dataclass(frozen=True)
class Function:
    """One function of an object or a program."""

    name: str
    size: int
    """Bytes of code, of its unwind entry and of its exception table."""
    weak: bool
    """Other modules may hold a copy (COMDAT), of which the linker keeps one."""
    code: int = 0
    """Bytes of code alone; 0 if only the sum was estimated."""
    local: bool = False
    """Only its module can call it; False in a program."""


@dataclass(frozen=True)
class Measure:
    """The sizes of one file, in bytes."""

    sections: Mapping[str, int]
    """Bytes by class of :data:`CLASSES`."""
    functions: tuple[Function, ...]

    @property
    def loadable(self) -> int:
        """All loadable bytes."""
        return sum(self.sections.values())

    @property
    def text(self) -> int:
        """Bytes of code."""
        return self.sections[".text"]


def source_file(path: Path) -> str:
    """Return the name of the source file that an object was compiled from, without its folder.

    :raises ObjectError: if the object does not say, or cannot be read as ELF.
    """
    try:
        symbols = elf.read(path).symbols
    except ElfError:
        symbols = []
    for symbol in symbols:
        if symbol.kind == elf.FILE:
            return symbol.name
    raise ObjectError(f"'{path}' is no ELF object that names its source file.")


def aliases(path: Path) -> dict[str, frozenset[str]]:
    """Return, for each function of a program, all names of its code, its own among them.

    Complete and base constructors are one function with two names. Static functions of one name
    have the names of all of them.

    :raises ObjectError: if the file cannot be read as ELF.
    """
    try:
        symbols = elf.read(path).symbols
    except ElfError:
        raise ObjectError(f"'{path}' is no ELF file whose symbols can be read.") from None
    by_address: dict[int, set[str]] = defaultdict(set)
    for symbol in symbols:
        if symbol.kind == elf.FUNCTION and symbol.section:
            by_address[symbol.value].add(symbol.name)
    names: dict[str, set[str]] = defaultdict(set)
    for together in by_address.values():
        for name in together:
            names[name] |= together
    return {name: frozenset(together) for name, together in names.items()}


def measure(path: Path) -> Measure:
    """Measure an ELF object or executable.

    :raises ObjectError: if the file cannot be read as ELF.
    """
    try:
        return measured(elf.read(path))
    except ElfError:
        raise ObjectError(f"'{path}' is no complete ELF file that can be measured.") from None


def measured(binary: Elf) -> Measure:
    """Measure what was read.

    :raises ElfError: if it makes no sense.
    """
    if not binary.sections:
        raise ElfError("there are no sections")
    sizes = dict.fromkeys(CLASSES, 0)
    for section in binary.sections:
        kind = _class_of(section.name)
        if kind is not None:
            sizes[kind] += len(binary.content(section))
    relocatable = binary.kind == elf.RELOCATABLE
    functions = _function_symbols(binary, relocatable)
    extra = _unwind_bytes(binary, functions, relocatable)
    tables = _exception_tables(binary.sections) if relocatable else {}
    return Measure(
        sections=sizes,
        functions=tuple(
            Function(
                name=name,
                size=size + extra.get(place, 0) + tables.get(name, 0),
                weak=binding == elf.WEAK,
                code=size,
                local=relocatable and binding == elf.LOCAL,
            )
            for place, (name, size, binding) in functions.items()
        ),
    )


def _class_of(name: str) -> str | None:
    """Return the class of a section: ``.text.main`` is ``.text``, ``.data`` is none."""
    kind = "." + name[1:].partition(".")[0]
    return kind if kind in CLASSES and name.startswith(".") else None


_Place = tuple[int, int]
"""Section index and offset in an object; 0 and the address in a program."""


def _function_symbols(binary: Elf, relocatable: bool) -> dict[_Place, tuple[str, int, int]]:
    """Return name, code bytes and binding of each defined function by its place."""
    functions: dict[_Place, tuple[str, int, int]] = {}
    for symbol in binary.symbols:
        if symbol.kind != elf.FUNCTION or not symbol.section or not symbol.size:
            continue
        place = (symbol.section if relocatable else 0, symbol.value)
        # Aliases (complete and base constructors) share a place and are one function.
        functions.setdefault(place, (symbol.name, symbol.size, symbol.binding))
    return functions


def _exception_tables(sections: Sequence[Section]) -> dict[str, int]:
    """Return the bytes of each function's own ``.gcc_except_table.<function>``."""
    prefix = ".gcc_except_table."
    return {
        section.name[len(prefix) :]: section.size
        for section in sections
        if section.name.startswith(prefix)
    }


def _unwind_bytes(
    binary: Elf, functions: Mapping[_Place, object], relocatable: bool
) -> dict[_Place, int]:
    """Return the bytes that each function's unwind entry takes in the linked program."""
    section = binary.named(".eh_frame")
    if section is None:
        return {}
    data = binary.content(section)
    places = _unwind_places(binary) if relocatable else {}
    starts = sorted(functions)
    bytes_of: dict[_Place, int] = {}
    for offset, length in _frame_entries(data):
        where = offset + 8  # of the function's address, behind the length and the CIE pointer
        if relocatable:
            place = places.get(where)
        else:
            (relative,) = struct.unpack_from("<i", data, where)
            place = (0, section.address + where + relative)
        if place is None:
            continue
        index = bisect.bisect_right(starts, place) - 1
        if index >= 0 and starts[index][0] == place[0]:
            owner = starts[index]
            bytes_of[owner] = bytes_of.get(owner, 0) + length + _EH_HDR_BYTES_PER_FUNCTION
    return bytes_of


def _unwind_places(binary: Elf) -> dict[int, _Place]:
    """Return what the relocations of an object's ``.eh_frame`` refer to, by their places."""
    symbols = binary.symbols
    places: dict[int, _Place] = {}
    for _, relocations in binary.relocations(".eh_frame"):
        for offset, _, number, addend in relocations:
            if number >= len(symbols):
                raise ElfError("a relocation of a symbol that is not there")
            places[offset] = (symbols[number].section, symbols[number].value + addend)
    return places


def _frame_entries(data: bytes) -> Iterator[tuple[int, int]]:
    """Yield offset and length of each function's entry (FDE) in an ``.eh_frame``."""
    offset = 0
    while offset + 8 <= len(data):
        length, identity = struct.unpack_from("<II", data, offset)
        if length in (0, 0xFFFFFFFF):  # the end, or the 64-bit form that nobody emits
            return
        if identity != 0 and offset + 12 <= len(data):  # 0 is a CIE, shared by many
            yield offset, length + 4
        offset += length + 4
