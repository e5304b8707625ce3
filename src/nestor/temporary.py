"""Temporary folders that go with their process, however it ends.

All temporary folders of a process are in one *run folder*, which the process holds locked as long
as it lives. It removes the folder when it ends. A process that was killed cannot: the next one that
needs a temporary folder finds the run folder unlocked and removes it.
"""

import atexit
import contextlib
import os
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import tempfile

PREFIX: Final = "nestor-run-"
"""What the names of run folders begin with, in the system's folder for temporary files."""


class _Runs:
    """The run folders of this process: one, unless ``tempfile.tempdir`` is changed on the way."""

    def __init__(self) -> None:
        self.making = threading.Lock()
        self.folders: dict[str, Path] = {}
        self.descriptors: list[int] = []

    def forget(self) -> None:
        """Leave all to the process that this one was forked from."""
        for descriptor in self.descriptors:
            os.close(descriptor)  # those of the parent hold the locks
        self.__init__()  # type: ignore[misc]


_runs = _Runs()
os.register_at_fork(after_in_child=_runs.forget)


def temporary_folder(purpose: str) -> "tempfile.TemporaryDirectory[str]":
    """Return a new folder of this process, for ``with`` or until its ``cleanup()``.

    :param purpose: a word for its name.
    :raises OSError: if it cannot be made.
    """
    import tempfile  # takes 10 ms, and the compiler wrapper rarely needs it

    return tempfile.TemporaryDirectory(
        prefix=f"{purpose}-", dir=run_folder(), ignore_cleanup_errors=True
    )


def run_folder() -> Path:
    """Return the folder that holds all temporary folders of this process.

    The first call makes it, and removes those of processes that were killed.

    :raises OSError: if it cannot be made.
    """
    import tempfile

    system = tempfile.gettempdir()
    with _runs.making:
        folder = _runs.folders.get(system)
        if folder is None or not folder.is_dir():
            folder, descriptor = _make(Path(system))
            _runs.folders[system] = folder
            _runs.descriptors.append(descriptor)
            atexit.register(_remove, folder, os.getpid())
        return folder


def _make(system: Path) -> tuple[Path, int]:
    """Return a new run folder in the folder ``system``, and the descriptor that holds its lock."""
    import fcntl
    import tempfile

    for other in system.glob(f"{PREFIX}*"):
        _remove_if_left(other)
    # Under another name until it is locked, so that no other process takes it for one that is left.
    new = Path(tempfile.mkdtemp(prefix=".nestor-", dir=system))
    descriptor = os.open(new, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    with contextlib.suppress(OSError):  # without locks, nobody can tell what is left
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    folder = system / f"{PREFIX}{os.getpid()}-{os.urandom(4).hex()}"
    return new.rename(folder), descriptor


def _remove_if_left(folder: Path) -> None:
    """Remove a run folder of this user whose process is gone."""
    import fcntl
    import shutil

    try:
        flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
        descriptor = os.open(folder, flags)
    except OSError:
        return
    try:
        if os.fstat(descriptor).st_uid == os.geteuid():
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(folder, ignore_errors=True)
    except OSError:  # its process lives, or the file system has no locks
        return
    finally:
        os.close(descriptor)


def _remove(folder: Path, process: int) -> None:
    import shutil

    if os.getpid() == process:  # a fork has this to do for its own folder only
        shutil.rmtree(folder, ignore_errors=True)
