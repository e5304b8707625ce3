"""What ``nestor clang`` and ``nestor flags`` came to the last time, as long as it still holds.

To find the compiler, its plugin and the policy takes some 0.4 s, and a build asks once per source
file. So the result is kept in the cache with everything that it depends on: the words, the
variables of the environment, and each file that was looked at with its size, times and inode. If
one of them differs, nothing is remembered and all is looked up again.

Imports only what Python itself has imported by now: this is what a compile waits for.
"""

from __future__ import annotations

import binascii
import os
import sys
import time

from nestor.compiler.cache import cache_place
from nestor.errors import NestorError

TYPE_CHECKING = False  # as typing has it, whose import takes longer than all else here
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_HEADER = "nestor-command 1"
_VARIABLES = ("NESTOR_LLVM", "PATH", "HOME")
ABSENT = "absent"
"""The stamp of no file."""
_START = time.time()
_SETTLED = 2.0
"""Seconds without a change after which the times of a file tell its next change for certain; some
file systems count in whole seconds."""


def recall(words: Sequence[str]) -> list[str] | None:
    """Return what :func:`remember` was called with for ``words``, None if it holds no more."""
    for anywhere in (True, False):
        try:
            key = _key(words, anywhere)
            with open(_place(key), "rb") as file:  # noqa: PTH123  pathlib is slow to import
                fields = os.fsdecode(file.read()).split("\0")
            if fields[: len(key)] != key:
                continue
            count = int(fields[len(key)])
            files = fields[len(key) + 1 : len(key) + 1 + 2 * count]
            result = fields[len(key) + 1 + 2 * count :]
            if len(files) == 2 * count and result[-1] == _HEADER and _unchanged(files):
                return result[:-1]
        except (OSError, ValueError, IndexError, NestorError):
            continue
    return None


def remember(
    words: Sequence[str], result: Sequence[str], stamps: dict[str, str], *, anywhere: bool
) -> None:
    """Keep ``result`` for the next time; a cache that cannot be written is no error.

    :param stamps: of all files that the result depends on, by :func:`stamp`, each taken before
        the file was read.
    :param anywhere: whether ``words`` mean the same in every folder.
    """
    from pathlib import Path

    from nestor.files import write_atomically

    key = _key(words, anywhere)
    files = [word for pair in stamps.items() for word in pair]
    fields = [*key, str(len(stamps)), *files, *result, _HEADER]
    if any("\0" in field for field in fields):
        return
    try:
        write_atomically(Path(_place(key)), os.fsencode("\0".join(fields)))
    except OSError:
        return


def stamp(path: str) -> str:
    """Return what changes when the file at ``path`` does, or when there is another or none."""
    try:
        found = os.stat(path)  # noqa: PTH116
    except (OSError, ValueError):
        return ABSENT
    return f"{found.st_size} {found.st_mtime_ns} {found.st_ctime_ns} {found.st_ino}"


def stamps(paths: Iterable[str]) -> dict[str, str]:
    """Return the :func:`stamp` of each file."""
    return {path: stamp(path) for path in paths}


def settled(path: str) -> bool:
    """Tell whether a file's next change will show in its :func:`stamp`.

    A file that has just been written may be written again within one tick of its clock.
    """
    try:
        found = os.stat(path)  # noqa: PTH116
    except (OSError, ValueError):
        return False
    return max(found.st_mtime, found.st_ctime) < time.time() - _SETTLED


def changed_since_start(path: str) -> bool:
    """Tell whether a file was written or replaced while this process has run."""
    try:
        return os.stat(path).st_ctime > _START  # noqa: PTH116
    except (OSError, ValueError):
        return True


def _unchanged(files: list[str]) -> bool:
    return all(stamp(path) == was for path, was in zip(files[::2], files[1::2], strict=True))


def _key(words: Sequence[str], anywhere: bool) -> list[str]:
    folder = "" if anywhere else os.getcwd()  # noqa: PTH109
    variables = [os.environ.get(name, "") for name in _VARIABLES]
    return [_HEADER, sys.executable, __file__, folder, *variables, str(len(words)), *words]


def _place(key: list[str]) -> str:
    """Return the file for ``key``; two keys may share it, so the file holds its own."""
    return f"{cache_place()}/commands/{binascii.crc32(os.fsencode(chr(0).join(key))):08x}"
