"""Run one compiler process within limits, and say what it used and how it ended.

A compile is pure work: nothing is read from standard input unless a file is named, no output is
inherited, and a process that outlives its limits, or us, is killed with everything it started.
"""

import contextlib
import enum
import errno
import math
import os
import resource
import select
import signal
import subprocess
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from nestor.compiler.orphans import killed_if_left, marked
from nestor.messages import compiler_error
from nestor.temporary import run_folder

_NOTHING = Path(os.devnull)
_STDERR_KEPT = 16_384
_LONGEST_WAIT = 0.2
"""Seconds. A cancellation is seen after a wait, and so is a signal that comes just before it."""
_BUSY_TRIES, _BUSY_WAIT = 100, 0.02
"""How often, and after how many seconds, a program is started again that is still being written."""


class Ending(enum.Enum):
    """How a process ended."""

    OK = "ok"
    FAILED = "failed"
    """It returned an error of its own."""
    CRASHED = "crashed"
    """It died by a signal that nobody here sent."""
    TIMEOUT = "timeout"
    MEMORY = "memory limit"
    CANCELLED = "cancelled"
    NOT_STARTED = "not started"


@dataclass(frozen=True)
class Limits:
    """What one process may use."""

    seconds: float = 120.0
    """Wall-clock time."""
    memory_mib: int = 4096
    """Address space."""


@dataclass(frozen=True)
class Outcome:
    """What became of one process."""

    ending: Ending
    returncode: int
    stderr: str
    """The first 16 KiB."""
    cpu_seconds: float
    """User and system time, of its children too."""
    wall_seconds: float
    peak_mib: float

    @property
    def ok(self) -> bool:
        """The process returned 0."""
        return self.ending is Ending.OK

    @property
    def reason(self) -> str:
        """One line that says what went wrong."""
        detail = compiler_error(self.stderr) or f"exit status {self.returncode}"
        return f"{self.ending.value}: {detail}"


def run(
    command: Sequence[str | Path],
    limits: Limits | None = None,
    *,
    cwd: Path | None = None,
    cancelled: threading.Event | None = None,
    stdin: Path | None = None,
    stdout: Path | None = None,
    reduced: bool = True,
) -> Outcome:
    """Run ``command`` (never through a shell) and wait for it.

    Standard input and output are the files named, or nothing.

    Thread-safe.

    :param reduced: give it only what a compiler needs of the environment, so that the same command
        gives the same bytes for everybody; a command of the user's needs the user's own.
    """
    limits = limits or Limits()
    start = time.monotonic()
    with (
        messages() as errors,
        (stdin or _NOTHING).open("rb") as source,
        (stdout or _NOTHING).open("wb") as output,
    ):
        try:
            process = _start(
                [str(word) for word in command],
                (source, output, errors),
                cwd,
                environment() if reduced else os.environ | marked(run_folder()),
            )
        except OSError as error:
            why = f"{error.filename or command[0]}: {error.strerror}"
            return Outcome(Ending.NOT_STARTED, 127, why, 0.0, 0.0, 0.0)
        with killed_if_left(process.pid):
            restrict(process.pid, limits)
            killed = _wait_or_kill(process.pid, start + limits.seconds, cancelled)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)  # Popen must not wait again
        errors.seek(0)
        stderr = errors.read(_STDERR_KEPT).decode(errors="replace")
    return Outcome(
        ending=killed or _ending(process.returncode, stderr),
        returncode=process.returncode,
        stderr=stderr,
        cpu_seconds=usage.ru_utime + usage.ru_stime,
        wall_seconds=time.monotonic() - start,
        peak_mib=usage.ru_maxrss / 1024,
    )


def _start(
    command: Sequence[str],
    streams: tuple[BinaryIO, BinaryIO, BinaryIO],
    cwd: Path | None,
    environment: Mapping[str, str],
) -> "subprocess.Popen[bytes]":
    """Start a process, in a session of its own so that a kill reaches what it started.

    A program that was written just now can be busy: a process that another thread has forked in
    that moment holds the file open until it becomes its own program.

    :raises OSError: if it cannot be started.
    """
    source, output, errors = streams
    tries = 0
    while True:
        try:
            return subprocess.Popen(
                command,
                stdin=source,
                stdout=output,
                stderr=errors,
                cwd=cwd,
                env=environment,
                start_new_session=True,
            )
        except OSError as error:
            tries += 1
            if error.errno != errno.ETXTBSY or tries > _BUSY_TRIES:
                raise
        time.sleep(_BUSY_WAIT)


def run_tool(command: Sequence[str]) -> "subprocess.CompletedProcess[str]":
    """Run a tool of the user's, such as CMake, in the user's own environment and without limits.

    It ends with all that it started when we are interrupted or killed.
    """
    with (
        subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
            env=os.environ | marked(run_folder()),
            start_new_session=True,
        ) as process,
        killed_if_left(process.pid),
    ):
        output, errors = process.communicate()
    return subprocess.CompletedProcess(command, process.returncode, output, errors)


def restrict(pid: int, limits: Limits) -> None:
    """Let the kernel enforce ``limits`` on a process, also when nobody is left to watch it.

    A lower limit that the process has already, from the user's shell, stays. The CPU time is
    bounded just above the wall-clock limit, which comes first while we live.
    """
    size = limits.memory_mib << 20
    cpu = math.ceil(limits.seconds) + 1
    with contextlib.suppress(ProcessLookupError):  # it may be gone already
        for kind, own in (
            (resource.RLIMIT_AS, size),
            (resource.RLIMIT_CPU, cpu),
            (resource.RLIMIT_CORE, 0),
        ):
            present = (n for n in resource.prlimit(pid, kind) if n != resource.RLIM_INFINITY)
            lower = min([own, *present])
            resource.prlimit(pid, kind, (lower, lower))


def messages() -> BinaryIO:
    """Return an anonymous file in memory for what a compiler says: a full disk must not mute it."""
    return os.fdopen(os.memfd_create("nestor-stderr"), "w+b")


def environment() -> dict[str, str]:
    """Return the environment that compiler processes run in."""
    kept = ("PATH", "HOME", "LD_LIBRARY_PATH", "SYSTEMROOT")
    own = {"LC_ALL": "C"} | marked(run_folder())
    return {name: os.environ[name] for name in kept if name in os.environ} | own


def _wait_or_kill(pid: int, deadline: float, cancelled: threading.Event | None) -> Ending | None:
    """Wait for ``pid`` to end; kill its session at the deadline or when cancelled."""
    handle = os.pidfd_open(pid)
    try:
        waiter = select.poll()
        waiter.register(handle, select.POLLIN)
        while True:
            left = deadline - time.monotonic()
            why = None
            if cancelled is not None and cancelled.is_set():
                why = Ending.CANCELLED
            elif left <= 0:
                why = Ending.TIMEOUT
            if why is not None:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(pid, signal.SIGKILL)
                return why
            if waiter.poll(max(1.0, min(left, _LONGEST_WAIT) * 1000)):
                return None
    finally:
        os.close(handle)


def _ending(returncode: int, stderr: str) -> Ending:
    if returncode == 0:
        return Ending.OK
    if "out of memory" in stderr or "bad_alloc" in stderr or "Cannot allocate memory" in stderr:
        return Ending.MEMORY
    # Clang's driver turns a crash of its own into an exit status with a stack dump.
    if returncode < 0 or returncode >= 128 or "PLEASE submit a bug report" in stderr:
        return Ending.CRASHED
    return Ending.FAILED
