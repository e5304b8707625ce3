"""The command lines with which modules become objects: at once, or in the two steps of LTO.

Under LTO modules are compiled half-way by clang, then as one inside lld, where the decisions are
made. lld parses ``-mllvm`` before it loads pass plugins (lld/ELF/LTO.cpp loads them with each back
end), so the plugin's options would be unknown; ``-mllvm -load=`` loads the library at once, and its
constructor makes them known.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from nestor.compiler.plugin import Plugin
from nestor.compiler.profile_option import with_profile_beside
from nestor.compiler.toolchain import Toolchain

LtoKind = Literal["full", "thin"]
"""``full`` optimises the program as one module; ``thin`` each module with imports from others."""


def compile_command(
    toolchain: Toolchain,
    options: Sequence[str],
    bitcode: Path,
    out: Path,
    flags: Sequence[str] = (),
) -> list[str]:
    """Return the command that compiles ``bitcode`` into the object ``out``.

    :param options: the module's recorded cc1 line, ``-cc1`` first; its profile, if it has one, lies
        beside ``bitcode``.
    :param flags: what is asked of the plugin or the channel; nothing gives the stock compiler.
    """
    words = with_profile_beside(options, bitcode)
    return [str(toolchain.clang), *words, *flags, "-x", "ir", str(bitcode), "-o", str(out)]


def prelink_command(
    toolchain: Toolchain,
    options: Sequence[str],
    bitcode: Path,
    out: Path,
    kind: LtoKind,
    flags: Sequence[str] = (),
) -> list[str]:
    """Return the command that optimises ``bitcode`` for LTO and writes what lld takes.

    :param options: the module's recorded cc1 line, for an object file.
    :param flags: what is asked of the plugin in this phase.
    """
    words = ["-emit-llvm-bc" if word == "-emit-obj" else word for word in options]
    lto = [f"-flto={kind}", "-flto-unit"]  # as clang's driver says it
    return compile_command(toolchain, [*words, *lto], bitcode, out, flags)


def link_flags(plugin: Plugin, flags: Sequence[str]) -> list[str]:
    """Return what a linking clang hands to lld, so that lld does what ``flags`` ask.

    :param flags: of :meth:`Plugin.words`.
    """
    options = [word for word in flags if word.startswith("-nestor-")]
    path = plugin.path.resolve()
    words = [f"-load={path}", *options]
    linker = [f"--load-pass-plugin={path}", *(w for o in words for w in ("-mllvm", o))]
    return [word for one in linker for word in ("-Xlinker", one)]
