"""Summarise a program for the compiles of its modules: what one module cannot see.

Whether a call is the only one, whether other objects hold copies of the callee, how large it
became: a compiler that sees one module does not know, and the objects of the stock build do. The
summary is a text file (docs/formats.md) that the plugin reads with ``-nestor-program``; policies
see it as the features ``program_…``.
"""

import struct
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple

import lief
import xxhash

from nestor.compiler.objects import ObjectError, measure

LinkMode = Literal["gc", "no-gc", "icf"]

_SYMBOL: Final = struct.Struct("<IBBHQQ")
"""``Elf64_Sym``: name, info, other, section, value, size."""
_RELOCATION: Final = struct.Struct("<QIIq")
"""``Elf64_Rela``: offset, type, symbol, addend."""

# Values of the ELF and x86-64 ABIs.
_LOCAL, _FUNCTION, _SECTION, _FILE = 0, 2, 3, 4
_ALLOCATED, _SYMBOL_TABLE, _RELOCATIONS, _UNDEFINED = 2, 2, 4, 0
_PC32, _PLT32, _GOTPCREL, _GOTPCRELX, _REX_GOTPCRELX = 2, 4, 9, 41, 42
_CALLS: Final = frozenset({_PLT32, _GOTPCRELX})
"""Calls and jumps; without a REX prefix, a relaxable load is a call's of ``-fno-plt``."""
_END_RELATIVE: Final = frozenset({_PC32, _PLT32, _GOTPCREL, _GOTPCRELX, _REX_GOTPCRELX})
"""What counts from the end of its four bytes, so that the addend is four too small."""
_UNWIND: Final = (".eh_frame", ".gcc_except_table")


@dataclass(frozen=True)
class FunctionUse:
    """What the objects of a program say of one function."""

    copies: int
    """Objects that define it; the linker keeps one."""
    bytes: int
    """Code, unwind entry and exception table of its largest copy."""
    calls: int
    """Direct calls in all objects."""
    users: int
    """Objects that refer to it and do not define it."""
    address_taken: bool
    """Something other than a call refers to it."""


@dataclass(frozen=True)
class ProgramSummary:
    """All functions that a program's objects define, by :func:`function_id`."""

    link: LinkMode
    functions: Mapping[int, FunctionUse]

    def to_text(self) -> str:
        """Return the file's text; the same summary gives the same bytes."""
        lines = ["nestor-program 1", f"link {self.link}"]
        for key, use in sorted(self.functions.items()):
            counts = f"{use.copies} {use.bytes} {use.calls} {use.users} {use.address_taken:d}"
            lines.append(f"function {key:016x} {counts}")
        return "\n".join(lines) + "\n"

    def save(self, path: Path) -> None:
        """Write the file at once or not at all."""
        partial = path.with_name(path.name + ".partial")
        partial.write_text(self.to_text())
        partial.replace(path)


def function_id(name: str, source_file: str | None = None) -> int:
    """Return the id under which the plugin knows a function (``functionID``).

    :param source_file: for a local function, its module's source file, with or without folders.
    """
    own = xxhash.xxh3_64_intdigest(name.encode())
    if source_file is None:
        return own
    both = own.to_bytes(8, "little") + module_id(source_file).to_bytes(8, "little")
    return xxhash.xxh3_64_intdigest(both)


def module_id(source_file: str) -> int:
    """Return the id under which the plugin knows a module (``moduleID``)."""
    return xxhash.xxh3_64_intdigest(source_file.rpartition("/")[2].encode())


def summarise(objects: Sequence[Path], mode: LinkMode) -> ProgramSummary:
    """Summarise the program that is linked from ``objects``, which the stock compiler made.

    :raises ObjectError: if one is no x86-64 object file.
    """
    read = [_read(path) for path in objects]
    # Two names of one function, such as a class's two constructors, share what is known of it.
    leader: dict[int, int] = {}

    def lead(name: int) -> int:
        while leader.get(name, name) != name:
            name = leader[name]
        return name

    for names in (names for item in read for names in item.functions):
        for name in names:
            leader.setdefault(name, name)
            leader[lead(name)] = lead(names[0])
    copies: Counter[int] = Counter()
    sizes: dict[int, int] = {}
    calls: Counter[int] = Counter()
    users: Counter[int] = Counter()
    taken: set[int] = set()
    for item in read:
        defined = {lead(names[0]): size for names, size in item.functions.items()}
        copies.update(defined.keys())
        for key, size in defined.items():
            sizes[key] = max(sizes.get(key, 0), size)
        called: Counter[int] = Counter()
        for name, count in item.calls.items():
            called[lead(name)] += count
        calls.update(called)
        addresses = {lead(name) for name in item.taken}
        taken |= addresses
        users.update((called.keys() | addresses) - defined.keys())
    return ProgramSummary(
        mode,
        {
            name: FunctionUse(copies[key], sizes[key], calls[key], users[key], key in taken)
            for name, key in ((name, lead(name)) for name in leader)
        },
    )


_Place = tuple[int, int]
"""Section index and offset."""


class _Symbol(NamedTuple):
    name: str
    kind: int
    local: bool
    place: _Place


@dataclass(frozen=True)
class _Object:
    """One object: ids of functions instead of symbols."""

    functions: Mapping[tuple[int, ...], int]
    """The names of each defined function → bytes."""
    calls: Mapping[int, int]
    taken: frozenset[int]


def _read(path: Path) -> _Object:
    sizes = {function.name: function.size for function in measure(path).functions}
    binary = lief.ELF.parse(str(path))
    if binary is None or binary.header.machine_type != lief.ELF.ARCH.X86_64:
        raise ObjectError(f"'{path}' is no x86-64 object, and only those can be summarised.")
    try:
        return _look(list(binary.sections), sizes)
    except (IndexError, ValueError, struct.error):
        raise ObjectError(
            f"'{path}' is damaged: its symbols or relocations make no sense."
        ) from None


def _look(sections: Sequence[Any], sizes: Mapping[str, int]) -> _Object:
    symbols = _symbols(sections)
    ids: list[int | None] = []  # by symbol; sections and data have none
    functions: defaultdict[_Place, list[int]] = defaultdict(list)
    bytes_of: dict[_Place, int] = {}
    source_file = ""
    for symbol in symbols:
        known = None
        if symbol.kind == _FILE:
            source_file = symbol.name
        elif symbol.place[0] == _UNDEFINED:
            known = function_id(symbol.name)
        elif symbol.kind == _FUNCTION:
            known = function_id(symbol.name, source_file if symbol.local else None)
            functions[symbol.place].append(known)
            bytes_of.setdefault(symbol.place, sizes.get(symbol.name, 0))
        ids.append(known)

    calls: Counter[int] = Counter()
    taken: set[int] = set()
    for kind, index, addend in _relocations(sections):
        target = ids[index]
        if target is None and symbols[index].kind == _SECTION:
            offset = addend + 4 if kind in _END_RELATIVE else addend
            # Exactly a function's start: jump tables point into the middle.
            target = next(iter(functions.get((symbols[index].place[0], offset), ())), None)
        if target is None:
            continue
        if kind in _CALLS:
            calls[target] += 1
        else:
            taken.add(target)
    named = {tuple(names): bytes_of[place] for place, names in functions.items()}
    return _Object(named, calls, frozenset(taken))


def _symbols(sections: Sequence[Any]) -> list[_Symbol]:
    """Return the symbol table."""
    table = next((s for s in sections if int(s.type) == _SYMBOL_TABLE), None)
    if table is None:
        return []
    strings = bytes(sections[table.link].content)
    return [
        _Symbol(
            strings[name : strings.index(b"\0", name)].decode(errors="surrogateescape"),
            info & 15,
            info >> 4 == _LOCAL,
            (section, value),
        )
        for name, info, _, section, value, _ in _SYMBOL.iter_unpack(bytes(table.content))
    ]


def _relocations(sections: Sequence[Any]) -> Iterator[tuple[int, int, int]]:
    """Yield type, symbol and addend of the relocations of code and data.

    What unwinding and debuggers need is neither a call nor a use of an address.
    """
    for section in sections:
        if int(section.type) != _RELOCATIONS:
            continue
        target = sections[section.information]
        if int(target.flags) & _ALLOCATED and not str(target.name).startswith(_UNWIND):
            for _, kind, symbol, addend in _RELOCATION.iter_unpack(bytes(section.content)):
                yield kind, symbol, addend
