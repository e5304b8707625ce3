"""Sections, symbols and relocations of ELF files, read without a library.

Elsewhere LIEF reads them. What runs once a build cannot wait for it: to import LIEF takes 0.6 s of
CPU time, a seventh of building lua, and pyelftools takes 30 µs for each symbol, twice that in all.
"""

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Final, NamedTuple

from nestor.errors import NestorError

RELOCATABLE: Final = 1
"""The kind of an object file, behind the magic number."""
X86_64: Final = 62

# Values of the ELF specification.
FUNCTION, SECTION, FILE = 2, 3, 4
"""Kinds of symbols."""
LOCAL, WEAK = 0, 2
INTERNAL, HIDDEN = 1, 2
"""Visibilities of symbols that no other file of the process can name."""
UNDEFINED: Final = 0
"""The section of a symbol that the file does not define."""
ALLOCATED: Final = 2
"""The flag of sections that are loaded."""
_SYMBOL_TABLE, _WITH_ADDENDS, _EMPTY, _WITHOUT_ADDENDS, _INDICES = 2, 4, 8, 9, 18
_ELSEWHERE: Final = 0xFFFF
"""The number is too large for its field."""


class ElfError(NestorError):
    """Something that is no sound ELF file."""


class Section(NamedTuple):
    """A row of the table of sections."""

    number: int
    name: str
    kind: int
    flags: int
    address: int
    offset: int
    size: int
    link: int
    information: int


class Symbol(NamedTuple):
    """A row of the symbol table."""

    name: str
    kind: int
    binding: int
    visibility: int
    section: int
    """:data:`UNDEFINED`, an index, or one of the numbers for what is in no section."""
    value: int
    size: int


class Relocation(NamedTuple):
    """A row of a table of relocations; the addend is 0 where it is kept in the section."""

    offset: int
    kind: int
    symbol: int
    addend: int


@dataclass(frozen=True)
class _Layout:
    """The structures of one class of files."""

    header: struct.Struct
    section: struct.Struct
    symbol: struct.Struct
    with_addend: struct.Struct
    without_addend: struct.Struct


def _layout(order: str, *, wide: bool) -> _Layout:
    fields = (
        ("HHIQQQIHHHHHH", "IIQQQQIIQQ", "IBBHQQ", "QQq", "QQ")
        if wide
        else ("HHIIIIIHHHHHH", "IIIIIIIIII", "IIIBBH", "IIi", "II")
    )
    return _Layout(*(struct.Struct(order + each) for each in fields))


_MAGIC: Final = b"\x7fELF"
_IDENTITY: Final = 16
"""Bytes before the header's numbers."""
_LAYOUTS: Final = {
    (1, 1): _layout("<", wide=False),
    (1, 2): _layout(">", wide=False),
    (2, 1): _layout("<", wide=True),
    (2, 2): _layout(">", wide=True),
}
"""By class and byte order, as the file says them."""
_WIDE: Final = 2
_NONSENSE: Final = (struct.error, IndexError, ValueError, OverflowError)
"""What numbers lead to that make no sense."""


class Elf:
    """An ELF file in memory.

    :raises ElfError: if it is none, or ends before its sections do. So do the properties and
        methods for what makes no sense.
    """

    def __init__(self, content: bytes) -> None:
        self._content = content
        layout = _LAYOUTS.get((content[4], content[5])) if len(content) > _IDENTITY else None
        if layout is None or not content.startswith(_MAGIC):
            raise ElfError("no ELF file")
        self._layout = layout
        self._wide = content[4] == _WIDE
        try:
            fields = layout.header.unpack_from(content, _IDENTITY)
            self.kind, self.machine = fields[0], fields[1]
            self.sections = self._sections(fields[5], fields[10:])
        except _NONSENSE as error:
            raise ElfError("no complete ELF file") from error

    def content(self, section: Section) -> bytes:
        """Return the bytes of a section; none of one that takes no space in the file."""
        if section.kind == _EMPTY:
            return b""
        end = section.offset + section.size
        if end > len(self._content):
            raise ElfError(f"the section {section.name} is longer than the file")
        return self._content[section.offset : end]

    def named(self, name: str) -> Section | None:
        """Return the first section of this name."""
        return next((section for section in self.sections if section.name == name), None)

    @cached_property
    def symbols(self) -> list[Symbol]:
        """The symbol table; empty without one."""
        table = next((s for s in self.sections if s.kind == _SYMBOL_TABLE), None)
        if table is None:
            return []
        try:
            return self._symbols(table)
        except _NONSENSE as error:
            raise ElfError("the symbol table makes no sense") from error

    def relocations(self, name: str = "") -> Iterator[tuple[Section, list[Relocation]]]:
        """Yield each section that has relocations, and these.

        :param name: of these sections alone.
        """
        for section in self.sections:
            if section.kind not in (_WITH_ADDENDS, _WITHOUT_ADDENDS):
                continue
            if section.information >= len(self.sections):
                raise ElfError("relocations of a section that is not there")
            target = self.sections[section.information]
            if name and target.name != name:
                continue
            try:
                rows = list(self._relocations(section))
            except _NONSENSE as error:
                raise ElfError("a table of relocations is cut short") from error
            yield target, rows

    def _sections(self, offset: int, numbers: tuple[int, ...]) -> list[Section]:
        _, count, names_index = numbers
        layout = self._layout.section
        if not offset:
            return []
        first = layout.unpack_from(self._content, offset)
        count = count or first[5]
        names_index = first[6] if names_index == _ELSEWHERE else names_index
        if offset + count * layout.size > len(self._content):
            raise ValueError
        end = offset + count * layout.size
        rows = list(layout.iter_unpack(self._content[offset:end]))
        start, size = rows[names_index][4], rows[names_index][5]
        names = self._content[start : start + size]
        return [Section(number, _text(names, row[0]), *row[1:8]) for number, row in enumerate(rows)]

    def _symbols(self, table: Section) -> list[Symbol]:
        names = self.content(self.sections[table.link])
        rows = list(self._layout.symbol.iter_unpack(self.content(table)))
        if not self._wide:
            rows = [(row[0], *row[3:6], row[1], row[2]) for row in rows]
        far = self._far_indices(table)
        return [
            Symbol(
                _text(names, name),
                info & 15,
                info >> 4,
                other & 3,
                far[number] if section == _ELSEWHERE and far else section,
                value,
                size,
            )
            for number, (name, info, other, section, value, size) in enumerate(rows)
        ]

    def _far_indices(self, table: Section) -> list[int]:
        """Return the sections of symbols in a file with more than 65,279 of them."""
        found = (s for s in self.sections if s.kind == _INDICES and s.link == table.number)
        order = self._layout.header.format[0]
        return [row[0] for s in found for row in struct.iter_unpack(f"{order}I", self.content(s))]

    def _relocations(self, section: Section) -> Iterator[Relocation]:
        content = self.content(section)
        shift, mask = (32, 0xFFFFFFFF) if self._wide else (8, 0xFF)
        if section.kind == _WITH_ADDENDS:
            for offset, info, addend in self._layout.with_addend.iter_unpack(content):
                yield Relocation(offset, info & mask, info >> shift, addend)
        else:
            for offset, info in self._layout.without_addend.iter_unpack(content):
                yield Relocation(offset, info & mask, info >> shift, 0)


def read(path: Path) -> Elf:
    """Read an ELF file.

    :raises ElfError: if it is none, or cannot be read.
    """
    try:
        return Elf(path.read_bytes())
    except OSError as error:
        raise ElfError(f"it cannot be read: {error.strerror}") from error


def _text(strings: bytes, start: int) -> str:
    """Return the string that starts at ``start`` in a table of strings."""
    return strings[start : strings.index(b"\0", start)].decode(errors="surrogateescape")
