"""End the compilers of a process that was killed, and remove its temporary folders.

A process that gets SIGKILL can do nothing for those that it started. So each process that starts
compilers also starts a *watcher*, one for all of them: it learns over a pipe which process groups
run, and kills them when the pipe ends, which the kernel sees to however the writer dies.

This file is the watcher's program, too: it is run by itself, without the package.
"""

import contextlib
import os
import signal
import sys
import threading
from collections.abc import Iterable, Iterator


class _Watcher:
    """The watcher of this process, started with the first compiler."""

    def __init__(self) -> None:
        self.writing = threading.Lock()
        self.pipe = -1

    def say(self, line: str) -> None:
        with self.writing:
            if self.pipe < 0:
                self.pipe = _start()
            try:
                os.write(self.pipe, line.encode())
            except BrokenPipeError:  # somebody has killed it
                os.close(self.pipe)
                self.pipe = -1

    def forget(self) -> None:
        """Leave the watcher to the process that this one was forked from."""
        if self.pipe >= 0:
            os.close(self.pipe)
        self.__init__()  # type: ignore[misc]


_watcher = _Watcher()
os.register_at_fork(after_in_child=_watcher.forget)


@contextlib.contextmanager
def ends_with_us(group: int) -> Iterator[None]:
    """Within the block, let a process group end when this process does, even by SIGKILL.

    If the block raises, an interrupt for example, the group is killed.

    :param group: a process group of its own, whose leader has not been waited for.
    """
    _watcher.say(f"+{group}\n")
    try:
        yield
    except BaseException:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(group, signal.SIGKILL)
        raise
    finally:
        # Before the leader is waited for: as long as it is not, nobody else gets its number.
        _watcher.say(f"-{group}\n")


def _start() -> int:
    """Start the watcher and return the descriptor of the pipe to it."""
    from nestor.temporary import run_folder

    reading, writing = os.pipe()
    null = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
    try:
        os.posix_spawn(
            sys.executable,
            [sys.executable, "-I", "-S", __file__],
            {},
            file_actions=[
                (os.POSIX_SPAWN_DUP2, reading, 0),
                (os.POSIX_SPAWN_DUP2, null, 1),
                (os.POSIX_SPAWN_DUP2, null, 2),
            ],
            setsid=True,  # an interrupt at the terminal is not for it
        )
    except OSError:  # no room for another process: compile without it
        os.dup2(null, writing, inheritable=False)
    finally:
        os.close(null)
        os.close(reading)
    os.write(writing, b"=" + os.fsencode(run_folder()) + b"\n")
    return writing


def watch(lines: Iterable[bytes]) -> None:
    """Follow what a process says of its compilers; clean up after it when the lines end."""
    groups: set[int] = set()
    folders: set[bytes] = set()
    for line in lines:
        what, value = line[:1], line[1:].rstrip(b"\n")
        if what == b"+":
            groups.add(int(value))
        elif what == b"-":
            groups.discard(int(value))
        else:
            folders.add(value)
    for group in groups:
        with contextlib.suppress(OSError):
            os.killpg(group, signal.SIGKILL)
    for folder in filter(os.path.exists, folders):
        import shutil

        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    watch(sys.stdin.buffer)
