"""The two command lines of LTO: modules compiled half-way by clang, then as one inside lld.

The decisions are made in lld. It parses ``-mllvm`` before it loads pass plugins (lld/ELF/LTO.cpp
loads them with each back end), so the plugin's options would be unknown; ``-mllvm -load=`` loads
the library at once, and its constructor makes them known.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from nestor.compiler.plugin import Plugin
from nestor.compiler.toolchain import Toolchain

LtoKind = Literal["full", "thin"]
"""``full`` optimises the program as one module; ``thin`` each module with imports from others."""


def prelink_command(
    toolchain: Toolchain,
    options: Sequence[str],
    bitcode: Path,
    out: Path,
    kind: LtoKind,
    flags: Sequence[str] = (),
) -> list[str]:
    """Return the command that optimises ``bitcode`` for LTO and writes what lld takes.

    :param options: the module's recorded cc1 line, ``-cc1`` first, for an object file.
    :param flags: what is asked of the plugin in this phase; nothing gives the stock compiler.
    """
    words = ["-emit-llvm-bc" if word == "-emit-obj" else word for word in options]
    lto = [f"-flto={kind}", "-flto-unit"]  # as clang's driver says it
    command = [str(toolchain.clang), *words, *lto, *flags]
    return [*command, "-x", "ir", str(bitcode), "-o", str(out)]


def link_flags(plugin: Plugin, flags: Sequence[str]) -> list[str]:
    """Return what a linking clang hands to lld, so that lld does what ``flags`` ask.

    :param flags: of :meth:`Plugin.flags`.
    """
    options = [word for word in flags if word.startswith("-nestor-")]
    path = plugin.path.resolve()
    words = [f"-load={path}", *options]
    linker = [f"--load-pass-plugin={path}", *(w for o in words for w in ("-mllvm", o))]
    return [word for one in linker for word in ("-Xlinker", one)]
