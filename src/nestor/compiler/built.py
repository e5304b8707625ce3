"""Things built from the package's own sources on this machine: once, and kept in the cache."""

import hashlib
import shutil
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


def build_once(path: Path, build: Callable[[Path], Path]) -> None:
    """Build the file ``path`` unless it exists: ``build`` builds it in the folder that it gets.

    Safe to call from several processes at once: one builds, the others wait. The file is whole or
    absent, and never replaced, since others may have loaded it. On a file system without locks
    several processes may build, and the first one's file stays.
    """
    if path.exists():
        return
    with locked(path.parent / "lock"):
        if path.exists():
            return
        with temporary_folder("build") as folder:
            result = build(Path(folder))
            with adding(path) as scratch:
                shutil.copy2(result, scratch)
