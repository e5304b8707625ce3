"""The command lines with which modules become objects."""

from collections.abc import Sequence
from pathlib import Path

from nestor.compiler.toolchain import Toolchain


def compile_command(
    toolchain: Toolchain,
    options: Sequence[str],
    bitcode: Path,
    out: Path,
    flags: Sequence[str] = (),
) -> list[str]:
    """Return the command that compiles ``bitcode`` into the object ``out``.

    :param options: the module's recorded cc1 line, ``-cc1`` first.
    :param flags: what is asked of the plugin or the channel; nothing gives the stock compiler.
    """
    return [str(toolchain.clang), *options, *flags, "-x", "ir", str(bitcode), "-o", str(out)]
