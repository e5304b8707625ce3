"""Write files so that nobody ever sees a part of one: not a reader, not a second process.

Every write goes to a scratch file of its own beside the target, under a name that no other process
on any host takes, and takes the target's place by one rename. So several writers of one path never
disturb each other, the last one wins, and a process that is killed leaves the file as it was.
"""

import contextlib
import os
import secrets
from collections.abc import Iterator
from pathlib import Path


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
    path.parent.mkdir(parents=True, exist_ok=True)
    scratch = path.with_name(f".{secrets.token_hex(8)}.part")
    try:
        yield scratch
        scratch.replace(path)
    finally:
        scratch.unlink(missing_ok=True)
