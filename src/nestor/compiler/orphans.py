"""End the compilers of a process that was killed, and remove its temporary folders.

A process that gets SIGKILL can do nothing for those that it started. So each process that starts
compilers also starts a *watcher*, which waits at a pipe that ends when the process does, however
it dies. If the process has left its run folder behind (:mod:`nestor.temporary`), the watcher kills
every process that has this folder as its ``TMPDIR``: compilers, and what they started in turn.

This file is the watcher's program, too: it is run by itself, without the package.
"""

import contextlib
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

_VARIABLE = "TMPDIR"
_QUIET_LOOKS = 5
"""Looks without a process in them, after which none is about to start either."""
_LOOK_SECONDS = 0.05


class _Watchers:
    """The watchers of this process, by the run folder; there is hardly ever more than one."""

    def __init__(self) -> None:
        self.starting = threading.Lock()
        self.pipes: dict[Path, int] = {}

    def forget(self) -> None:
        """Leave them to the process that this one was forked from."""
        for pipe in self.pipes.values():
            os.close(pipe)
        self.__init__()  # type: ignore[misc]


_watchers = _Watchers()
os.register_at_fork(after_in_child=_watchers.forget)


def marked(folder: Path) -> dict[str, str]:
    """Return the environment variable by which a process started with it ends when we do.

    :param folder: the run folder of this process.
    """
    with _watchers.starting:
        if folder not in _watchers.pipes:
            _watchers.pipes[folder] = _start(folder)
    return {_VARIABLE: str(folder)}


@contextlib.contextmanager
def killed_if_left(group: int) -> Iterator[None]:
    """Kill a process group if the block raises, because of an interrupt for example."""
    try:
        yield
    except BaseException:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(group, signal.SIGKILL)
        raise


def kill_marked() -> None:
    """Kill every process that was started with :func:`marked`, and what it has started."""
    for folder in list(_watchers.pipes):
        _kill(folder)


def _start(folder: Path) -> int:
    """Start a watcher and return the descriptor of the pipe to it."""
    reading, writing = os.pipe()
    null = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
    try:
        # Without room for another process, compile unwatched.
        with contextlib.suppress(OSError):
            os.posix_spawn(
                sys.executable,
                [sys.executable, "-I", "-S", __file__, str(folder)],
                {},
                file_actions=[
                    (os.POSIX_SPAWN_DUP2, reading, 0),
                    (os.POSIX_SPAWN_DUP2, null, 1),
                    (os.POSIX_SPAWN_DUP2, null, 2),
                ],
                setsid=True,  # an interrupt at the terminal is not for it
            )
    finally:
        os.close(null)
        os.close(reading)
    return writing


def _watch(folder: Path) -> None:
    """Wait for the end of standard input; then clean up, unless that was done."""
    sys.stdin.buffer.read()
    if not folder.exists():
        return
    quiet = 0
    while quiet < _QUIET_LOOKS:
        quiet = 0 if _kill(folder) else quiet + 1
        time.sleep(_LOOK_SECONDS)
    import shutil

    shutil.rmtree(folder, ignore_errors=True)


def _kill(folder: Path) -> bool:
    """Kill all processes that are marked by ``folder``; return whether there were any."""
    variable = os.fsencode(f"{_VARIABLE}={folder}")
    found = False
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):  # it is gone, or another user's
            if variable in (process / "environ").read_bytes().split(b"\0"):
                os.kill(int(process.name), signal.SIGKILL)
                found = True
    return found


if __name__ == "__main__":
    _watch(Path(sys.argv[1]))
