"""Run a program under our tool and return its events."""

import os
import shutil
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from nestor.compiler.process import Limits, Outcome, run
from nestor.events.errors import EventsError
from nestor.events.executed import table_of
from nestor.events.simulated.caches import Caches
from nestor.events.simulated.failures import failure
from nestor.events.simulated.records import parse
from nestor.events.simulated.tool import NAME, ensure_tool
from nestor.events.table import About, EventTable
from nestor.files import read_regular, sha256_of
from nestor.temporary import temporary_folder

_PROGRAM_STEP, _TOOL_STEP = 125, 250
"""Bytes. A path is made as long as the next multiple; of its own a program may copy 127 at most."""
LARGEST: Final = 1 << 32
"""Bytes of the counts of a run that are read."""


@dataclass(frozen=True)
class RunSettings:
    """How a program is run under the tool."""

    stdin: Path | None = None
    """The program's standard input (default: none)."""
    folder: Path | None = None
    """Where it runs (default: the present folder)."""
    stdout: Path | None = None
    """Where its output goes (default: it is dropped)."""
    seconds: float = 3600.0
    """The longest time that the run may take; it takes 40 to 70 times as long as without."""
    caches: Caches = field(default_factory=Caches)
    """What is simulated."""


@dataclass(frozen=True)
class Collected:
    """A run and its events."""

    table: EventTable
    exit_status: int
    """Of the program."""


def collect(
    program: Path, arguments: Sequence[str], settings: RunSettings | None = None
) -> Collected:
    """Run ``program`` with ``arguments`` and return its events.

    The environment is the same for every run, so that equal runs give equal counts. Processes that
    the program starts are not counted.

    :raises EventsError: if the program cannot be run, crashes or runs too long, or valgrind is
        absent.
    """
    settings = settings or RunSettings()
    content, outcome = counted(program, arguments, settings)
    about = About(
        "simulated",
        1,
        program.name,
        sha256_of(program),
        settings=settings.caches.described(),
    )
    return Collected(table_of(parse(content), about), outcome.returncode)


def under_tool(out: Path, caches: Caches, *variables: str) -> list[str]:
    """Return the command that runs a program, to be named behind it, under the tool.

    The environment is the same for every run.

    :param out: the file for the counts, which :func:`nestor.events.simulated.records.parse` reads.
    :param variables: more of the environment, as ``NAME=VALUE``.
    :raises EventsError: if valgrind, a compiler or the program env is absent.
    """
    tool, env = ensure_tool(), shutil.which("env")
    if env is None:
        raise EventsError("There is no program env; install the package coreutils.")
    return [
        env, "-i", "PATH=/usr/bin:/bin", "LC_ALL=C", "TMPDIR=/tmp",
        f"VALGRIND_LIB={_as_long(f'{tool.folder}/', _TOOL_STEP)}", *variables,
        str(tool.valgrind.program), "-q", f"--tool={NAME}", "--demangle=no",
        f"--events-out={out}", *caches.options(),
    ]  # fmt: skip


def _as_long(path: str, step: int) -> str:
    """Return a path with so many slashes more that it is as long as nearly all others.

    The program has its own path and that of the tool in memory, and what lies behind them moves
    with their lengths, which changes its misses and mispredictions.

    :param step: the length, or a multiple of it where the path is longer.
    """
    folder, slash, name = path.rpartition("/")
    return folder + slash + "/" * (-len(os.fsencode(path)) % step) + name


def counted(
    program: Path, arguments: Sequence[str], settings: RunSettings, *options: str
) -> tuple[bytes, Outcome]:
    """Run a program under the tool; return the file of its counts and how it ended.

    :param options: more of the tool's own.
    :raises EventsError: as :func:`collect`.
    """
    if not program.is_file():
        raise EventsError(f"There is no program '{program}'; name one by its path.")
    with program.open("rb") as file:
        if file.read(2) == b"#!":
            raise EventsError(f"'{program}' is a script; name the program that runs it.")
    with temporary_folder("events") as text:
        out = Path(text) / "events"
        under = under_tool(out, settings.caches)
        own = _as_long(str(program.absolute()), _PROGRAM_STEP)
        command = [*under, *options, own, *arguments]
        outcome = run(
            command,
            Limits(settings.seconds, memory_mib=1 << 16),
            cwd=settings.folder,
            stdin=settings.stdin,
            stdout=settings.stdout,
        )
        wrong = failure(outcome, out.exists())
        if wrong is not None:
            raise EventsError(f"'{program}' {wrong}")
        return read_regular(out, "counts of a run", limit=LARGEST), outcome
