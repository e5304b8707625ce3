"""Count in a program's objects who defines, calls and refers to each of its functions.

The objects are those of an ordinary build by the stock compiler; what they say of the program is
its summary (``compiler/program_summary``).
"""

import struct
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, NamedTuple

import lief

from nestor.compiler.objects import ObjectError, measure
from nestor.problems.inlining_size.summary.program_summary import (
    FunctionUse,
    LinkMode,
    ProgramSummary,
    function_id,
)

_SYMBOL: Final = struct.Struct("<IBBHQQ")
"""``Elf64_Sym``: name, info, other, section, value, size."""
_RELOCATION: Final = struct.Struct("<QIIq")
"""``Elf64_Rela``: offset, type, symbol, addend."""

# Values of the ELF and x86-64 ABIs.
_LOCAL, _WEAK, _FUNCTION, _SECTION, _FILE = 0, 2, 2, 3, 4
_INTERNAL, _HIDDEN = 1, 2
"""Visibilities of symbols that no other file of the process can name."""
_ALLOCATED, _SYMBOL_TABLE, _RELOCATIONS, _UNDEFINED = 2, 2, 4, 0
_PC32, _PLT32, _GOTPCREL, _GOTPCRELX, _REX_GOTPCRELX = 2, 4, 9, 41, 42
_CALLS: Final = frozenset({_PLT32, _GOTPCRELX})
"""Calls and jumps; without a REX prefix, a relaxable load is a call's of ``-fno-plt``."""
_END_RELATIVE: Final = frozenset({_PC32, _PLT32, _GOTPCREL, _GOTPCRELX, _REX_GOTPCRELX})
"""What counts from the end of its four bytes, so that the addend is four too small."""
_UNWIND: Final = (".eh_frame", ".gcc_except_table")


@dataclass(frozen=True)
class ObjectUses:
    """What one object defines and refers to, by the ids of functions."""

    functions: Mapping[tuple[int, ...], int]
    """The names of each defined function → bytes."""
    calls: Mapping[int, int]
    taken: frozenset[int]
    exported: frozenset[int]
    """Those that a shared library has for other files, and so keeps if nothing in it calls them.

    Weak ones are left out: nearly all are inline functions and templates, which the compiler drops
    where nothing uses them, whoever may name them. Explicit instantiations are weak, too, and stay;
    an object does not tell them apart.
    """
    apart: bool
    """Each function has a section of its own, so that every call can be counted."""
    by_clang: bool
    """No other compiler says that it made the object (assemblers say nothing)."""


def summarise(objects: Sequence[Path], mode: LinkMode, *, exports: bool = False) -> ProgramSummary:
    """Summarise the program that is linked from ``objects``, which the stock compiler made.

    :param exports: it is a shared library, or has its functions for shared libraries otherwise.
    :raises ObjectError: if one is no x86-64 object file.
    """
    uses = [read(path) for path in objects]
    return combine([with_exports(one) for one in uses] if exports else uses, mode)


def with_exports(uses: ObjectUses) -> ObjectUses:
    """Return the uses of an object in a linked file that exports its functions.

    Other files may refer to these, and the linker drops none of them: as if something in the
    program took their addresses.
    """
    return replace(uses, taken=uses.taken | uses.exported)


def combine(objects: Sequence[ObjectUses], mode: LinkMode) -> ProgramSummary:
    """Return the summary of the program that is linked from ``objects``."""
    # Two names of one function, such as a class's two constructors, share what was counted.
    leader: dict[int, int] = {}

    def lead(name: int) -> int:
        while leader.get(name, name) != name:
            name = leader[name]
        return name

    for names in (names for item in objects for names in item.functions):
        for name in names:
            leader.setdefault(name, name)
            leader[lead(name)] = lead(names[0])
    copies: Counter[int] = Counter()
    sizes: dict[int, int] = {}
    calls: Counter[int] = Counter()
    users: Counter[int] = Counter()
    taken: set[int] = set()
    for item in objects:
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


def read(path: Path) -> ObjectUses:
    """Read one object file.

    :raises ObjectError: if it is no x86-64 object file.
    """
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


_Place = tuple[int, int]
"""Section index and offset."""


class _Symbol(NamedTuple):
    name: str
    kind: int
    local: bool
    exported: bool
    place: _Place


def _look(sections: Sequence[Any], sizes: Mapping[str, int]) -> ObjectUses:
    symbols = _symbols(sections)
    ids: list[int | None] = []  # by symbol; sections and data have none
    functions: defaultdict[_Place, list[int]] = defaultdict(list)
    bytes_of: dict[_Place, int] = {}
    exported: set[int] = set()
    source_file = ""
    for symbol in symbols:
        identity = None
        if symbol.kind == _FILE:
            source_file = symbol.name
        elif symbol.place[0] == _UNDEFINED:
            identity = function_id(symbol.name)
        elif symbol.kind == _FUNCTION:
            identity = function_id(symbol.name, source_file if symbol.local else None)
            functions[symbol.place].append(identity)
            bytes_of.setdefault(symbol.place, sizes.get(symbol.name, 0))
            if symbol.exported:
                exported.add(identity)
        ids.append(identity)

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
    return ObjectUses(
        functions=named,
        calls=calls,
        taken=frozenset(taken),
        exported=frozenset(exported),
        apart=max(Counter(section for section, _ in functions).values(), default=1) == 1,
        by_clang=all(b"clang version" in text for text in _compilers(sections)),
    )


def _compilers(sections: Sequence[Any]) -> list[bytes]:
    """Return what compilers have written into the object about themselves."""
    comments = (bytes(s.content) for s in sections if str(s.name) == ".comment")
    return [text for comment in comments for text in comment.split(b"\0") if text]


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
            info >> 4 not in (_LOCAL, _WEAK) and other & 3 not in (_INTERNAL, _HIDDEN),
            (section, value),
        )
        for name, info, other, section, value, _ in _SYMBOL.iter_unpack(bytes(table.content))
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
