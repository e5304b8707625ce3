"""Write files so that nobody ever sees a part of one: not a reader, not a second process.

Every write goes to a scratch file of its own beside the target, under a name that no other process
on any host takes, and takes the target's place by one rename. So several writers of one path never
disturb each other, the last one wins, and a process that is killed leaves the file as it was.

The compiler wrapper imports this module: keep it quick.
"""

import contextlib
import errno
import os
from collections.abc import Iterator
from pathlib import Path

_NO_LOCKS = frozenset({errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP, errno.ENOTSUP, errno.EINVAL})
_READ_ONLY = frozenset({errno.EACCES, errno.EPERM, errno.EROFS})


def write_atomically(path: Path, content: bytes | str) -> None:
    """Write a whole file, or none; folders are made as needed.

    :param content: bytes, or text that is written as UTF-8.
    :raises OSError: if it cannot be written; the file before it stays whole.
    """
    with replacing(path) as scratch, scratch.open("xb") as file:
        file.write(content.encode() if isinstance(content, str) else content)
        file.flush()
        os.fsync(file.fileno())


@contextlib.contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Yield the path of a scratch file that takes the place of ``path`` when the block succeeds.

    The scratch file is in the folder of ``path``, since a rename is atomic only within one file
    system. It does not exist yet; after an error it is removed.
    """
    with scratch_file(path) as scratch:
        yield scratch
        scratch.replace(path)


@contextlib.contextmanager
def adding(path: Path) -> Iterator[Path]:
    """Yield the path of a scratch file that becomes ``path`` unless that exists by then.

    The first writer wins. That is what a shared library needs: other processes, on other hosts
    too, may have loaded the file, and on a network file system a file that is replaced is gone.
    Otherwise like :func:`replacing`.
    """
    with scratch_file(path) as scratch:
        yield scratch
        try:
            os.link(scratch, path)
        except FileExistsError:
            return
        except OSError:  # a file system without hard links
            if not path.exists():
                scratch.replace(path)


@contextlib.contextmanager
def locked(lock: Path) -> Iterator[None]:
    """Let one process at a time into the block: hold the lock of the file ``lock``, made if absent.

    Where there are no locks (some network file systems) or no right to write, the block runs
    without one. So a lock may save work or keep a read and a write together, but files must be
    whole without it.
    """
    import fcntl  # Not needed by the compiler wrapper.

    with contextlib.ExitStack() as stack:
        try:
            lock.parent.mkdir(parents=True, exist_ok=True)
            file = stack.enter_context(lock.open("a"))
            fcntl.flock(file, fcntl.LOCK_EX)
        except OSError as error:
            if error.errno not in _NO_LOCKS | _READ_ONLY:
                raise
        yield


@contextlib.contextmanager
def scratch_file(path: Path) -> Iterator[Path]:
    """Yield a path of its own in the folder of ``path``, for a file that is removed afterwards."""
    path.parent.mkdir(parents=True, exist_ok=True)
    scratch = path.with_name(f".{os.urandom(8).hex()}.part")
    try:
        yield scratch
    finally:
        scratch.unlink(missing_ok=True)
