"""Count in a program's objects who defines, calls and refers to each of its functions.

The objects are those of an ordinary build by the stock compiler; what they say of the program is
its summary (``program_summary``).
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from nestor.compiler import elf
from nestor.compiler.elf import Elf, ElfError, Relocation, Symbol
from nestor.compiler.objects import ObjectError, measured
from nestor.corpus.relink import LinkMode
from nestor.problems.inlining_size.summary.program_summary import (
    FunctionUse,
    ProgramSummary,
    function_id,
)

# Values of the x86-64 ABI.
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
    return combine([*uses, users_of_exports(uses)] if exports else uses, mode)


def users_of_exports(objects: Iterable[ObjectUses]) -> ObjectUses:
    """Return what other files may do with what is exported, as if they were one more object.

    It calls each exported function and takes its address. That the address is taken would be
    enough for the linker, which drops none of them, but not for policies: ``distilled`` inlines
    large functions of one call all the same, and they stay (a shared library grew by 2.9 %).
    """
    exported = {
        names[0] for one in objects for names in one.functions if not one.exported.isdisjoint(names)
    }
    return ObjectUses(
        functions={},
        calls=dict.fromkeys(exported, 1),
        taken=frozenset(exported),
        exported=frozenset(),
        apart=True,
        by_clang=True,
    )


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
    try:
        binary = elf.read(path)
        if binary.machine != elf.X86_64:
            raise ObjectError(f"'{path}' is no x86-64 object, and only those can be summarised.")
        return _look(binary)
    except ElfError as error:
        raise ObjectError(f"'{path}' cannot be summarised: {error}.") from None


_Place = tuple[int, int]
"""Section index and offset."""


def _look(binary: Elf) -> ObjectUses:
    sizes = {function.name: function.size for function in measured(binary).functions}
    symbols = binary.symbols
    ids: list[int | None] = []  # by symbol; sections and data have none
    functions: defaultdict[_Place, list[int]] = defaultdict(list)
    bytes_of: dict[_Place, int] = {}
    exported: set[int] = set()
    source_file = ""
    for symbol in symbols:
        identity = None
        if symbol.kind == elf.FILE:
            source_file = symbol.name
        elif symbol.section == elf.UNDEFINED:
            identity = function_id(symbol.name)
        elif symbol.kind == elf.FUNCTION:
            local = symbol.binding == elf.LOCAL
            identity = function_id(symbol.name, source_file if local else None)
            place = (symbol.section, symbol.value)
            functions[place].append(identity)
            bytes_of.setdefault(place, sizes.get(symbol.name, 0))
            if _is_exported(symbol):
                exported.add(identity)
        ids.append(identity)

    calls: Counter[int] = Counter()
    taken: set[int] = set()
    for _, kind, index, addend in _relocations(binary):
        if index >= len(symbols):
            raise ElfError("a relocation of a symbol that is not there")
        target = ids[index]
        if target is None and symbols[index].kind == elf.SECTION:
            offset = addend + 4 if kind in _END_RELATIVE else addend
            # Exactly a function's start: jump tables point into the middle.
            target = next(iter(functions.get((symbols[index].section, offset), ())), None)
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
        by_clang=all(b"clang version" in text for text in _compilers(binary)),
    )


def _compilers(binary: Elf) -> list[bytes]:
    """Return what compilers have written into the object about themselves."""
    comments = (binary.content(s) for s in binary.sections if s.name == ".comment")
    return [text for comment in comments for text in comment.split(b"\0") if text]


def _is_exported(symbol: Symbol) -> bool:
    hidden = symbol.visibility in (elf.INTERNAL, elf.HIDDEN)
    return symbol.binding not in (elf.LOCAL, elf.WEAK) and not hidden


def _relocations(binary: Elf) -> Iterator[Relocation]:
    """Yield the relocations of code and data.

    What unwinding and debuggers need is neither a call nor a use of an address.
    """
    for section, relocations in binary.relocations():
        if section.flags & elf.ALLOCATED and not section.name.startswith(_UNWIND):
            yield from relocations
