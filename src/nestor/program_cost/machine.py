"""The program that measures cycles on this machine without counters (``native/machine``)."""

import platform
from collections.abc import Sequence
from importlib import resources
from pathlib import Path
from typing import Final

from nestor.compiler.built import build_once, digest_of
from nestor.compiler.cache import cache_place
from nestor.compiler.process import Limits, run
from nestor.compiler.toolchain import ToolchainError
from nestor.cost.native.host_compiler import host_compiler
from nestor.errors import NestorError
from nestor.files import read_regular_text
from nestor.processor import measuring_core
from nestor.temporary import temporary_folder

_FLAGS: Final = ("-std=gnu11", "-O2", "-Wall", "-Wextra")
_LARGEST: Final = 1 << 20


class MachineError(NestorError):
    """Something cannot be measured on this machine; the text says why."""


def source_folder() -> Path:
    """Return the folder of the program's C sources."""
    return Path(str(resources.files("nestor"))) / "native" / "machine"


def measured_lines(
    words: Sequence[str | Path],
    *,
    core: int | None = None,
    seconds: float = 600.0,
    stdin: Path | None = None,
    folder: Path | None = None,
) -> list[list[str]]:
    """Run the program and return the words of the lines that it printed.

    :param words: what it is to measure.
    :param folder: where it runs; None: the present folder.
    :param core: the processor to run on; None: the last one that this process may use.
    :raises NestorError: if there is no such processor.
    :raises MachineError: if this is not Linux on x86-64, or it cannot be built or fails.
    """
    if (platform.system(), platform.machine()) != ("Linux", "x86_64"):
        raise MachineError("Cycles can be measured on Linux on x86-64 only.")
    with temporary_folder("machine") as scratch:
        out = Path(scratch) / "out"
        outcome = run(
            [_ensure(), str(measuring_core(core)), *words],
            Limits(seconds, memory_mib=1 << 16),
            cwd=folder,
            stdin=stdin,
            stdout=out,
        )
        if not outcome.ok:
            raise MachineError(f"Measuring failed ({outcome.reason}); try again.")
        return [
            line.split() for line in read_regular_text(out, "cycles", limit=_LARGEST).split("\n")
        ]


def _ensure() -> Path:
    try:
        compiler = host_compiler("c")
    except ToolchainError as error:
        raise MachineError(str(error)) from None
    digest = digest_of(source_folder(), " ".join([compiler, *_FLAGS]))
    path = Path(cache_place()) / "machine" / digest / "machine"

    def build(folder: Path) -> Path:
        result = folder / "machine"
        done = run([compiler, *_FLAGS, *sorted(source_folder().glob("*.c")), "-o", result])
        if not done.ok:
            raise MachineError(
                f"The program that measures cycles could not be built with {compiler}"
                f" ({done.reason}); install libc6-dev, or another compiler."
            )
        return result

    build_once(path, build)
    return path
