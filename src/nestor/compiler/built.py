"""Things built from the package's own sources on this machine: once, and kept in the cache."""

import hashlib
import os
import shutil
import struct
from collections.abc import Callable
from pathlib import Path

from nestor.files import adding, locked
from nestor.temporary import temporary_folder


def digest_of(sources: Path, builder: str) -> str:
    """Return 24 hex digits that change with the files below ``sources`` or with who builds them."""
    digest = hashlib.sha256(builder.encode())
    for file in sorted(path for path in sources.rglob("*") if path.is_file()):
        name = file.relative_to(sources).as_posix()
        digest.update(name.encode() + b"\0" + file.read_bytes())
    return digest.hexdigest()[:24]


def build_once(
    path: Path, build: Callable[[Path], Path], whole: Callable[[Path], bool] | None = None
) -> None:
    """Build the file ``path`` unless it exists: ``build`` builds it in the folder that it gets.

    Safe to call from several processes at once: one builds, the others wait. A file that is whole
    is never replaced, since others may have loaded it. On a file system without locks several
    processes may build, and the first one's file stays.

    :param whole: tells whether the file exists and is whole; None is :func:`is_complete`.
    :raises OSError: if the file cannot be written.
    """
    whole = whole or is_complete
    if whole(path):
        return
    path.parent.mkdir(parents=True, exist_ok=True)  # Not after a build that cannot be kept.
    with locked(path.parent / "lock"):
        if whole(path):
            return
        path.unlink(missing_ok=True)
        with temporary_folder("build") as folder:
            result = build(Path(folder))
            with adding(path) as scratch:
                shutil.copy2(result, scratch)


def is_complete(path: Path) -> bool:
    """Tell cheaply whether ``path`` is an ELF file that was not cut short.

    The table of sections is at the end of such a file, so one that was cut does not hold all of it.
    """
    try:
        with path.open("rb") as file:
            header = file.read(64)
            size = os.fstat(file.fileno()).st_size
    except OSError:
        return False
    if len(header) < 64 or header[:4] != b"\x7fELF":
        return False
    order = "<" if header[5] == 1 else ">"
    # Of e_shoff, and of e_shentsize and e_shnum: their format and place in ELF64 and in ELF32.
    word, table, entries = ("Q", 0x28, 0x3A) if header[4] == 2 else ("I", 0x20, 0x2E)
    (offset,) = struct.unpack_from(order + word, header, table)
    entry, count = struct.unpack_from(order + "HH", header, entries)
    return bool(offset) and size >= offset + max(1, count) * entry
