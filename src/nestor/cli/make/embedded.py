"""What the compile of a first build leaves beside its object: bitcode, command line and decisions.

With ``-fembed-bitcode=all`` clang puts its bitcode before all optimisation, with the order of uses,
and its command line into the object. They are taken out at once (binutils would take the object
for one of LTO). Compiling the bitcode is a compile without its front end.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from nestor.cli.make.embedded_names import BITCODE, COMMAND
from nestor.compiler import elf
from nestor.compiler.options import safe_cc1

_DEBUG: Final = re.compile(
    r"-debug-info-kind=[\w-]+ | -dwarf-version=\d | -gkey-instructions | -gno-column-info"
    r" | -gdwarf(32|64) | -gstrict-dwarf | -g(gnu-)?pubnames | -gsimple-template-names=\w+"
    r" | -f(no-)?debug-ranges-base-address | --compress-debug-sections=\w+"
    r" | -fdebug-compilation-dir=.*",
    re.VERBOSE,
)
"""Options of debug information that the back end reads too, to describe calls for instance.

All else that they have done is in the bitcode.
"""
_SOURCE: Final = "-main-file-name"
_NUMBERED: Final = re.compile(r".+\.\d+")
_FRONT_END: Final = re.compile(r"\.L(\.|__)")
"""Private names of the front end, ``.L.str.3`` or ``.L__const.main.a.1``: bitcode keeps them."""


@dataclass(frozen=True)
class Embedded:
    """The bitcode of a compile, and how to compile it."""

    bitcode: Path
    options: tuple[str, ...]
    """A cc1 line, ``-cc1`` first, without plugin, input and output."""
    source: str
    """The name of the source file, without its folder."""


def read(folder: Path) -> Embedded | None:
    """Return what a first build left in ``folder``.

    None if it left nothing, or an option of its command line cannot be replayed on bitcode.
    """
    bitcode, command = folder / BITCODE, folder / COMMAND
    if not bitcode.is_file() or not command.is_file():
        return None
    words = command.read_bytes().decode(errors="surrogateescape").split("\0")
    line = _without_plugin([word for word in words if word])
    named = line.index(_SOURCE) + 1 if _SOURCE in line else len(line)
    debug = [word for word in line if _DEBUG.fullmatch(word)]
    filtered = safe_cc1(word for word in line if word not in debug)
    if filtered.dropped or named >= len(line):
        return None
    return Embedded(bitcode, (*filtered.kept, *debug), line[named])


def has_new_names(path: Path, bitcode: Path) -> bool:
    """Tell whether the compiler has numbered names of its own in the object ``path``.

    It makes the name ``str`` unique as ``str.70`` or ``str.1``, depending on what it has named
    before, in the front end too. So such an object from bitcode may differ from one from source in
    names of local symbols, and in nothing else.
    """
    try:
        names = {symbol.name for symbol in elf.read(path).symbols}
    except elf.ElfError:
        return True
    content = bitcode.read_bytes()
    return any(_is_new(name, content) for name in names)


def _is_new(name: str, bitcode: bytes) -> bool:
    if not _NUMBERED.fullmatch(name) or _FRONT_END.match(name):
        return False
    return name.startswith(".L") or name.encode(errors="surrogateescape") not in bitcode


def _without_plugin(words: Sequence[str]) -> list[str]:
    """Return a cc1 line without what ``nestor make`` adds."""
    kept: list[str] = []
    remaining = iter(words)
    for word in remaining:
        if word == "-mllvm":
            value = next(remaining, "")
            kept += [] if value.startswith("-nestor-") else [word, value]
        elif word == "-load":
            value = next(remaining, "")
            kept += [] if value.endswith("nestor.plugin") else [word, value]
        elif not (word.startswith("-fpass-plugin=") and word.endswith("nestor.plugin")):
            kept.append(word)
    return kept
