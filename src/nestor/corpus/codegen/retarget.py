"""Give modules another target, as far as their IR does not depend on the one they were made for.

Clang's IR names its target, its data layout and the processor of each function; all else is the
same for targets whose C types have the same sizes, but for what the source asked of the processor
itself: assembly, intrinsics, vector types and the format of long double. A module that
holds such things is refused by the compiler and left out. What comes out is meant for compiling and
costing, not for running: headers and the C library were the old target's.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from nestor.compiler.process import Limits, run
from nestor.compiler.toolchain import Toolchain
from nestor.corpus.model import CorpusError

_LIMITS: Final = Limits(seconds=120.0)
_ATTRIBUTES: Final = re.compile(r' ?"(?:target-cpu|target-features|tune-cpu)"="[^"]*"')
_LAYOUT: Final = re.compile(r'^target datalayout = "[^"]*"$', re.MULTILINE)
_TRIPLE: Final = re.compile(r'^target triple = "[^"]*"$', re.MULTILINE)
_WITH_VALUE: Final = frozenset({"-target-cpu", "-tune-cpu", "-target-feature", "-target-abi"})


@dataclass(frozen=True)
class Target:
    """A target as clang's IR names it."""

    triple: str
    layout: str
    """The line ``target datalayout``."""


def target_named(toolchain: Toolchain, triple: str, folder: Path) -> Target:
    """Return the target of this name, such as ``aarch64-linux-gnu``.

    :param folder: for the files that are made.
    :raises CorpusError: if clang does not know it.
    """
    source, out = folder / "empty.c", folder / "empty.ll"
    source.write_text("")
    words = [toolchain.clang, f"--target={triple}", "-S", "-emit-llvm", source, "-o", out]
    outcome = run(list(map(str, words)), _LIMITS)
    found = _LAYOUT.search(out.read_text()) if outcome.ok else None
    if found is None:
        raise CorpusError(f"This clang does not compile for '{triple}': {outcome.reason}.")
    return Target(triple, found[0])


def retargeted_options(options: Sequence[str], triple: str) -> tuple[str, ...]:
    """Return a cc1 line for another target: without the processor and features of the old one."""
    found, words = list[str](), iter(options)
    for word in words:
        if word in _WITH_VALUE:
            next(words, None)
        elif word == "-triple":
            next(words, None)
            found += ["-triple", triple]
        else:
            found.append(word)
    return tuple(found)


def retarget(toolchain: Toolchain, bitcode: Path, target: Target, out: Path) -> str:
    """Write the module in ``bitcode`` as text for ``target``.

    :return: why that failed, in one line; empty if it did not.
    """
    words = ["-cc1", "-emit-llvm", "-disable-llvm-passes", "-x", "ir", bitcode, "-o", out]
    outcome = run(list(map(str, [toolchain.clang, *words])), _LIMITS)
    if not outcome.ok:
        return outcome.reason
    text = _ATTRIBUTES.sub("", out.read_text(encoding="utf-8", errors="surrogateescape"))
    text = _TRIPLE.sub(f'target triple = "{target.triple}"', _LAYOUT.sub(target.layout, text))
    out.write_text(text, encoding="utf-8", errors="surrogateescape")
    return ""
