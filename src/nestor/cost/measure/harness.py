"""Run blocks in the throughput harness (``native/throughput``) and read what it answers.

The harness is C for Linux on x86-64, compiled in a second by any C compiler and kept in the cache.
It runs each block in a process of its own, so that whatever a block does ends as one status.

The harness answers line by line while it reads, which ``nestor.compiler.process`` does not do; so
this is the one module of the cost models that starts a process itself.
"""

import contextlib
import os
import platform
import select
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Final

from nestor.compiler.built import build_once, digest_of
from nestor.compiler.plugin import cache_folder
from nestor.compiler.process import environment, messages, run
from nestor.cost.native.host_compiler import host_compiler
from nestor.errors import NestorError
from nestor.processor import measuring_core

OK: Final = "ok"
"""The status of a block that was measured; the others say what stopped it."""

_FLAGS: Final = ("-std=c11", "-O2", "-Wall", "-Wextra", "-fPIE", "-pie", "-fno-stack-protector")
# Without a stack protector: a block may change the thread's base, where the canary is.
_SLOWEST: Final = 30.0
"""Seconds for which the harness may not answer, beyond the time that a block may take."""
_WALL_FACTOR: Final = 20
"""As in Main.c: a block's process may wait this much longer than it runs."""
_HARMLESS: Final = (b"\x90",) * 20


_RANGES: Final = {
    "rounds": (1, 64),
    "runs": (1, 1 << 20),
    "page_limit": (0, 256),
    "milliseconds": (1, 60_000),
}
"""What the harness takes (``native/throughput/Main.c``)."""


class HarnessError(NestorError):
    """The harness cannot be built or run here; the text says why."""


@dataclass(frozen=True)
class HarnessSettings:
    """How blocks are run; the data set ``zen5`` was measured with ``overlapping=True``."""

    rounds: int = 7
    """Independent measurements in one pass, each with a calibration of its own."""
    runs: int = 10
    """Runs of each piece of code in a round; the fastest counts."""
    page_limit: int = 64
    """Pages that a block may touch."""
    milliseconds: int = 500
    """CPU time that a block may take."""
    core: int | None = None
    """The CPU to run on; None: the last one that this process may use."""
    overlapping: bool = False
    """Let repetitions overlap, as when zen5 was measured: short chains of dependent instructions
    read too low. Otherwise they are kept apart, which gives the steady state."""

    def options(self) -> list[str]:
        """Return the harness's options.

        :raises HarnessError: if the machine has no such core, or a number is out of range.
        """
        for name, (least, most) in _RANGES.items():
            if not least <= getattr(self, name) <= most:
                option = f"--{name.replace('_', '-')}"
                raise HarnessError(f"{option} must be {least:,} to {most:,}.")
        try:
            core = measuring_core(self.core)
        except NestorError as error:
            raise HarnessError(str(error)) from None
        numbers = (core, self.rounds, self.runs, self.page_limit, self.milliseconds)
        words = [w for pair in zip("crnpm", numbers, strict=True) for w in (f"-{pair[0]}", pair[1])]
        return [*map(str, words), *([] if self.overlapping else ["-f"])]


@dataclass(frozen=True)
class Reading:
    """The result of one pass over one block."""

    status: str
    ticks_per_cycle: float
    """Steps of the time stamp counter in a core cycle, in the last round; NaN unless ok."""
    cycles: tuple[float, ...]
    """Core cycles per iteration, one for each round; empty unless ok."""
    strain: tuple[float, ...]
    """Cycles of the probe around each round: more than usual if the core was shared."""
    pages: tuple[int, ...]
    """Addresses of the pages touched."""


def source_folder() -> Path:
    """Return the folder of the harness's C sources."""
    return Path(str(resources.files("nestor"))) / "native" / "throughput"


def ensure_harness() -> Path:
    """Return the harness, building it if need be.

    :raises HarnessError: if this is not Linux on x86-64, or the build fails.
    """
    if (platform.system(), platform.machine()) != ("Linux", "x86_64"):
        raise HarnessError(
            "Blocks can be measured on Linux on x86-64 only; take the labels of another machine."
        )
    compiler = host_compiler("c")
    digest = digest_of(source_folder(), " ".join([compiler, *_FLAGS]))
    path = cache_folder() / "throughput" / digest / "throughput"

    def build(folder: Path) -> Path:
        result = folder / "throughput"
        sources = sorted(source_folder().glob("*.c"))
        done = run([compiler, *_FLAGS, *sources, "-o", result])
        if not done.ok:
            raise HarnessError(
                f"The harness could not be built with {compiler} ({done.reason});"
                " install libc6-dev, or another compiler."
            )
        return result

    build_once(path, build)
    return path


def warm_up(harness: Path, settings: HarnessSettings) -> list[Reading]:
    """Return readings of a block that cannot fail, so that whatever fails is the machine.

    :raises HarnessError: if it fails all the same.
    """
    found = list(readings(harness, _HARMLESS, settings))
    failed = next((reading.status for reading in found if reading.status != OK), None)
    if failed is not None:
        raise HarnessError(
            f"Blocks cannot be run here: a nop ends with '{failed}'; allow seccomp filters and"
            " executable memory, and give blocks more time (--milliseconds)."
        )
    return found


def readings(
    harness: Path, blocks: Sequence[bytes], settings: HarnessSettings
) -> Iterator[Reading]:
    """Yield one reading for each block, in order, as they come.

    The harness ends with the iterator.

    :raises HarnessError: if the harness fails, which no block can cause, or stops answering.
    """
    with tempfile.TemporaryFile("w+") as lines_in, messages() as errors:
        lines_in.writelines(f"{block.hex()}\n" for block in blocks)
        lines_in.seek(0)
        process = subprocess.Popen(
            [str(harness), *settings.options()],
            stdin=lines_in,
            stdout=subprocess.PIPE,
            stderr=errors,
            env=environment(),
        )
        try:
            lines = _lines(process, _WALL_FACTOR * settings.milliseconds / 1000 + _SLOWEST)
            for _ in blocks:
                line = next(lines, None)
                if line is None:
                    process.wait()
                    errors.seek(0)
                    reason = errors.read(1024).decode(errors="replace").strip()
                    raise HarnessError(
                        f"The harness ended early ({reason or 'without a message'}); try again."
                    )
                yield _reading(line)
        finally:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            process.wait()
            if process.stdout is not None:
                process.stdout.close()


def _lines(process: subprocess.Popen[bytes], patience: float) -> Iterator[str]:
    assert process.stdout is not None
    output = process.stdout.fileno()
    waiter = select.poll()
    waiter.register(output, select.POLLIN)
    waiting = b""
    last_line = time.monotonic()
    while True:
        while b"\n" in waiting:
            line, waiting = waiting.split(b"\n", 1)
            yield line.decode()
            last_line = time.monotonic()
        if not waiter.poll(max(0.0, last_line + patience - time.monotonic()) * 1000):
            raise HarnessError("The harness stopped answering; try again on a less busy machine.")
        part = os.read(output, 1 << 16)
        if not part:
            return
        waiting += part


def _reading(line: str) -> Reading:
    status, ticks, cycles, strain, pages = line.split("\t")
    return Reading(
        status,
        float(ticks or "nan"),
        tuple(map(float, cycles.split())),
        tuple(map(float, strain.split())),
        tuple(int(page, 16) for page in pages.split()),
    )
