"""What an object of a stock compile holds besides its code: its bitcode and its command line.

clang puts both there for ``-fembed-bitcode=all``. The bitcode is that before all optimisation, with
the order of uses kept, so compiling it again is a compile without its front end.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import lief

from nestor.compiler.options import safe_cc1

BITCODE: Final = ".llvmbc"
COMMAND: Final = ".llvmcmd"
_NUMBERED: Final = re.compile(r"(?P<name>.+)\.\d+")
_FRONT_END: Final = re.compile(r"\.L(\.|__)")
"""Private names of the front end, ``.L.str.3`` or ``.L__const.main.a.1``: bitcode keeps them."""


@dataclass(frozen=True)
class Embedded:
    """The bitcode of a compile, and how to compile it."""

    bitcode: bytes
    options: tuple[str, ...]
    """A cc1 line, ``-cc1`` first, without plugin, input and output."""
    exact: bool
    """Whether the line holds every option that may matter; otherwise only the source will do."""


def read(path: Path) -> Embedded | None:
    """Return what the object ``path`` holds; None if that is not one module with its command."""
    binary = lief.ELF.parse(str(path))
    if binary is None:
        return None
    found = {
        str(section.name): bytes(section.content)
        for section in binary.sections
        if str(section.name) in (BITCODE, COMMAND)
    }
    if not found.get(BITCODE) or not found.get(COMMAND):
        return None
    words = found[COMMAND].decode(errors="surrogateescape").split("\0")
    filtered = safe_cc1(_without_plugin([word for word in words if word]))
    return Embedded(found[BITCODE], filtered.kept, filtered.dropped == 0)


def has_new_names(path: Path, bitcode: bytes) -> bool:
    """Tell whether the compiler has numbered names of its own in the object ``path``.

    It makes the name ``str`` unique as ``str.70`` or ``str.1``, depending on what it has named
    before, in the front end too. So such an object from bitcode may differ from one from source in
    names of local symbols, and in nothing else.
    """
    binary = lief.ELF.parse(str(path))
    names = () if binary is None else (str(symbol.name) for symbol in binary.symtab_symbols)
    return any(_is_new(name, bitcode) for name in names)


def _is_new(name: str, bitcode: bytes) -> bool:
    if not _NUMBERED.fullmatch(name) or _FRONT_END.match(name):
        return False
    return name.startswith(".L") or name.encode(errors="surrogateescape") not in bitcode


def _without_plugin(words: Sequence[str]) -> list[str]:
    """Return a cc1 line without what a stock compile under ``nestor make`` adds."""
    kept: list[str] = []
    remaining = iter(words)
    for word in remaining:
        if word == "-mllvm":
            value = next(remaining, "")
            kept += [] if value.startswith("-nestor-") else [word, value]
        elif not (word.startswith("-fpass-plugin=") and word.endswith("nestor.plugin")):
            kept.append(word)
    return kept
