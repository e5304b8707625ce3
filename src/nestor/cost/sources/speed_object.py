"""Compile a module for speed (-O2), whatever level it was captured for.

Bitcode of a -Oz build requests small code in the attributes of its functions, and these count for
more than the command line. The optimiser's own ``-force-remove-attribute`` takes them away first.
What is left is what the front end makes at -O2, but for functions that the source marks as cold:
those are then compiled for speed, too.
"""

import re
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from nestor.compiler.invocation import compile_command
from nestor.compiler.process import Limits, Outcome, run
from nestor.compiler.toolchain import Toolchain

DEFAULT_OPTIONS: Final = (
    "-cc1", "-triple", "x86_64-pc-linux-gnu", "-emit-obj", "-disable-free",
    "-mrelocation-model", "pic", "-pic-level", "2", "-pic-is-pie", "-mframe-pointer=none",
    "-funwind-tables=2", "-target-cpu", "x86-64", "-tune-cpu", "generic",
    "-mconstructor-aliases", "-ffunction-sections",
)  # fmt: skip
"""For bitcode without a recorded command line: what clang does on Linux."""

SPEED_FLAGS: Final = (
    "-O2", "-vectorize-loops", "-vectorize-slp", "-fbasic-block-address-map",
    "-mllvm", "-force-remove-attribute=minsize", "-mllvm", "-force-remove-attribute=optsize",
)  # fmt: skip

_LEVEL: Final = re.compile(r"-O.?|-vectorize-(loops|slp)|-disable-llvm-passes")


def speed_options(options: Sequence[str]) -> tuple[str, ...]:
    """Return a recorded cc1 line as one for -O2 with a basic-block address map."""
    return (*(o for o in options if not _LEVEL.fullmatch(o)), *SPEED_FLAGS)


def compile_for_speed(
    toolchain: Toolchain,
    options: Sequence[str],
    bitcode: Path,
    out: Path,
    limits: Limits | None = None,
    cancelled: threading.Event | None = None,
) -> Outcome:
    """Compile ``bitcode`` into the object ``out`` at -O2.

    :param options: the module's recorded cc1 line, or :data:`DEFAULT_OPTIONS`.
    """
    command = compile_command(toolchain, speed_options(options), bitcode, out)
    return run(command, limits, cancelled=cancelled)
