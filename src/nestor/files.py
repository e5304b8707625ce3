"""Read files that may be anything, and write files so that nobody ever sees a part of one.

What a user names, or what comes with a corpus, may be a named pipe, a device or a file of many
gigabytes: :func:`read_regular` refuses it in one sentence instead of waiting or filling memory.

Every write goes to a scratch file of its own beside the target, under a name that no other process
on any host takes, and takes the target's place by one rename. So several writers of one path never
disturb each other, the last one wins, and a process that is killed leaves the file as it was.

The compiler wrapper imports this module: keep it quick.
"""

import contextlib
import errno
import os
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import BinaryIO, Final

from nestor.errors import NestorError

USUAL_LIMIT: Final = 64 << 20
"""The most bytes of a file that are read unless the caller says otherwise, as in the plugin."""

_PIECE: Final = 1 << 20

_KINDS: Final = (
    (stat.S_ISDIR, "a folder"),
    (stat.S_ISFIFO, "a named pipe"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
    (stat.S_ISSOCK, "a socket"),
)
_NO_LOCKS = frozenset({errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP, errno.ENOTSUP, errno.EINVAL})
_READ_ONLY = frozenset({errno.EACCES, errno.EPERM, errno.EROFS})


class ReadError(NestorError):
    """A file cannot be read; the text names it, says what it is, and what to do."""

    def __init__(self, message: str, *, absent: bool = False) -> None:
        """Say why.

        :param absent: whether there is no such file.
        """
        super().__init__(message)
        self.absent = absent


def read_regular(
    path: Path, what: str, *, limit: int = USUAL_LIMIT, remedy: str | None = None
) -> bytes:
    """Return the content of a regular file; never wait for a writer, never read beyond a limit.

    :param what: what the file should hold, for the message: "overrides", "a summary".
    :param limit: the most bytes that are read.
    :param remedy: ends the message's sentence, if there is more to say than to name another file.
    :raises ReadError: if it is absent, unreadable, larger, or no regular file.
    """
    with open_regular(path, what, remedy=remedy, other=_name(limit)) as file:
        size = os.fstat(file.fileno()).st_size
        data = b""
        if size <= limit:
            try:
                data = file.read(size + 1)
                # The file may grow, and some do not say their size.
                while len(data) <= limit and (more := file.read(_PIECE)):
                    data += more
            except OSError as error:
                raise _not_opened(path, what, error, remedy) from None
    if size > limit or len(data) > limit:
        larger = f"it is larger than {_size(limit)}"
        raise ReadError(_unreadable(path, what, larger, remedy or _name(limit)))
    return data


@contextlib.contextmanager
def open_regular(
    path: Path, what: str, *, remedy: str | None = None, other: str = "name a regular file"
) -> Iterator[BinaryIO]:
    """Open a regular file to be read; never wait for a writer.

    :param what: what the file should hold, for the message.
    :param remedy: ends the message's sentence.
    :param other: does so without a remedy if there is something else than a regular file.
    :raises ReadError: if it is absent, unreadable, or no regular file.
    """
    try:
        # Without O_NONBLOCK, opening a named pipe would wait for a writer.
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY)
    except (OSError, ValueError) as error:  # ValueError: a NUL in the path
        raise _not_opened(path, what, error, remedy) from None
    # A folder can be opened as a descriptor alone.
    kind = _kind_of(os.fstat(descriptor))
    if kind is not None:
        os.close(descriptor)
        raise ReadError(_unreadable(path, what, f"it is {kind}", remedy or other))
    with open(descriptor, "rb") as file:  # noqa: PTH123
        yield file


def _not_opened(path: Path, what: str, error: Exception, remedy: str | None) -> ReadError:
    why = getattr(error, "strerror", None) or str(error)
    absent = isinstance(error, FileNotFoundError)
    return ReadError(_unreadable(path, what, why, remedy), absent=absent)


def _kind_of(status: os.stat_result) -> str | None:
    """Return what something is that is no regular file, such as a folder; None if it is one."""
    return next((name for test, name in _KINDS if test(status.st_mode)), None)


def read_regular_text(
    path: Path, what: str, *, limit: int = USUAL_LIMIT, remedy: str | None = None
) -> str:
    """Return the text of a regular file; bytes that are not UTF-8 are replaced.

    Otherwise like :func:`read_regular`.
    """
    return read_regular(path, what, limit=limit, remedy=remedy).decode(errors="replace")


def sha256_of(path: Path) -> str:
    """Return the SHA-256 of a file in hexadecimal; it is never in memory as a whole.

    :raises OSError: if the file cannot be read.
    """
    import hashlib  # the compiler wrapper hashes nothing

    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _unreadable(path: Path, what: str, why: str, remedy: str | None) -> str:
    return f"{path} cannot be read as {what}: {why}{f'; {remedy}' if remedy else ''}."


def _name(limit: int) -> str:
    return f"name a regular file of at most {_size(limit)}"


def _size(limit: int) -> str:
    return f"{limit >> 20:,} MiB" if limit >= 1 << 20 else f"{limit:,} bytes"


def write_atomically(path: Path, content: bytes | str) -> None:
    """Write a whole file, or none; folders are made as needed.

    :param content: bytes, or text that is written as UTF-8.
    :raises OSError: if it cannot be written; the file before it stays whole.
    """
    with replacing(path) as scratch, scratch.open("xb") as file:
        file.write(content.encode() if isinstance(content, str) else content)
        file.flush()
        os.fsync(file.fileno())


def write_script(path: Path, text: str) -> bool:
    """Write a program of the user's shell; one that stays the same keeps its time.

    By that time ccache knows a compiler. Paths in ``text`` are written as the bytes that they are.

    :return: whether it changed.
    :raises OSError: if it cannot be written; the program before it stays whole.
    """
    content = os.fsencode(text)
    if path.is_file() and path.read_bytes() == content:
        return False
    with replacing(path) as scratch:
        scratch.write_bytes(content)
        scratch.chmod(0o755)
    return True


def refuse_place(path: Path) -> None:
    """Find out that a file cannot be written before the work whose result it is to hold.

    :raises NestorError: if what is there is no regular file, or its folder cannot be written.
    """
    if (kind := _kind_at(path)) is not None:
        raise NestorError(f"{path} is {kind}: name a file to write.")
    _refuse_below(path, path.absolute().parents)


def refuse_folder(path: Path) -> None:
    """Find out that a folder cannot be made or written before the work whose results it is to hold.

    :raises NestorError: if what is there is no folder, or no file can be put into it.
    """
    if os.path.lexists(path) and not os.path.isdir(path):  # noqa: PTH112  no error without rights
        kind = _kind_at(path) or ("a file" if os.path.exists(path) else "a link to nothing")  # noqa: PTH110
        raise NestorError(f"{path} cannot be written: it is {kind}; name a folder.")
    _refuse_below(path, (path.absolute(), *path.absolute().parents))


def _refuse_below(path: Path, folders: Iterable[Path]) -> None:
    """Refuse ``path`` if the first of ``folders`` that is there takes nothing new."""
    folder = next(folder for folder in folders if os.path.lexists(folder))
    if not os.path.isdir(folder):  # noqa: PTH112
        kind = _kind_at(folder) or "a file"
        raise NestorError(f"{path} cannot be written: {folder} is {kind}; name another place.")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise NestorError(
            f"{path} cannot be written: the folder {folder} is read-only; name another place."
        )


def _kind_at(path: Path) -> str | None:
    """Say what stands at ``path`` if a file must not take its place, such as a folder.

    In /dev even a link to a regular file is none to replace: /dev/stdout is one.
    """
    if path.parent.resolve() == Path("/dev"):
        return "a device"
    try:
        return _kind_of(path.stat())
    except (OSError, ValueError):  # nothing there, or nothing that can be looked at
        return None


@contextlib.contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Yield the path of a scratch file that takes the place of ``path`` when the block succeeds.

    The scratch file is in the folder of ``path``, since a rename is atomic only within one file
    system. It does not exist yet; after an error it is removed.

    :raises OSError: if a folder, a device or a pipe is there.
    """
    if (kind := _kind_at(path)) is not None:  # a rename would put a file in the place of /dev/null
        raise IsADirectoryError(errno.EISDIR, f"it is {kind}", str(path))
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
def claimed(folder: Path, *, remedy: str = "take another --out") -> Iterator[None]:
    """Hold a folder for this process alone, so that no two runs mix what they keep there.

    The kernel ends the claim with the process, however it dies. A folder that was made for the
    claim, and in which nothing was written, goes away with it.

    :param remedy: what else one can do than wait, to end the message's sentence.
    :raises NestorError: if another process holds it, or it cannot be written.
    """
    import fcntl

    refuse_folder(folder)
    is_new = not folder.is_dir()
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / ".lock"
    # Not emptied when opened: what another process has written there is its number.
    with open(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666), "r+") as lock:  # noqa: PTH123
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise NestorError(
                f"The process {lock.read(20).strip() or 'of another run'} is at work in {folder}:"
                f" wait until it has ended, or {remedy}."
            ) from None
        except OSError as error:
            if error.errno not in _NO_LOCKS:
                raise
        if os.fstat(lock.fileno()).st_nlink == 0:
            raise NestorError(f"Another run in {folder} has ended just now: start again.")
        lock.truncate(0)
        lock.write(f"{os.getpid()}\n")
        lock.flush()
        try:
            yield
        finally:
            with contextlib.suppress(OSError):
                if is_new and [entry.name for entry in folder.iterdir()] == [path.name]:
                    path.unlink()
                    folder.rmdir()


@contextlib.contextmanager
def scratch_file(path: Path) -> Iterator[Path]:
    """Yield a path of its own in the folder of ``path``, for a file that is removed afterwards."""
    path.parent.mkdir(parents=True, exist_ok=True)
    scratch = path.with_name(f".{os.urandom(8).hex()}.part")
    try:
        yield scratch
    except OSError as error:
        # A full disk is reported without a name, or with one that tells a user nothing.
        if error.filename is None or str(scratch) in map(str, (error.filename, error.filename2)):
            error.filename = str(path)
            del error.filename2
        raise
    finally:
        with contextlib.suppress(OSError):  # on a read-only file system even if it is absent
            scratch.unlink(missing_ok=True)
