"""The command lines of the stages around the middle end: with a profile, or without one.

All take the recorded cc1 line of a module before optimisation.
"""

from collections.abc import Sequence
from pathlib import Path

from nestor.compiler.invocation import compile_command
from nestor.compiler.profile_option import without_profile
from nestor.compiler.toolchain import Toolchain

_NO_PASSES = "-disable-llvm-passes"


def optimise_command(
    toolchain: Toolchain,
    options: Sequence[str],
    bitcode: Path,
    out: Path,
    profile: Path | None = None,
) -> list[str]:
    """Return the command that runs the middle end on ``bitcode`` and writes bitcode again.

    The order of the uses of each value is kept, since code generation depends on it: without it
    9 of the 44 modules of the tiny tier at -O2 became other objects.

    :param profile: an indexed profile whose counts the bitcode is to carry.
    """
    words = ["-emit-llvm-bc" if word == "-emit-obj" else word for word in options]
    flags = ["-emit-llvm-uselists"]
    if profile is not None:
        words = list(without_profile(words))
        flags += ["-fprofile-instrument-use=llvm", f"-fprofile-instrument-use-path={profile}"]
    return compile_command(toolchain, words, bitcode, out, flags)


def instrument_command(
    toolchain: Toolchain, options: Sequence[str], bitcode: Path, out: Path
) -> list[str]:
    """Return the command that makes an object which counts what it executes."""
    counting = ["-fprofile-instrument=llvm"]
    return compile_command(toolchain, without_profile(options), bitcode, out, counting)


def codegen_options(options: Sequence[str]) -> tuple[str, ...]:
    """Return the cc1 line with which what :func:`optimise_command` wrote becomes an object."""
    own = without_profile(options)
    return own if _NO_PASSES in own else (*own, _NO_PASSES)
