"""Things built from the package's own sources on this machine: once, and kept in the cache."""

import fcntl
import hashlib
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path


def digest_of(sources: Path, builder: str) -> str:
    """Return 24 hex digits that change with the files below ``sources`` or with who builds them."""
    digest = hashlib.sha256(builder.encode())
    for file in sorted(path for path in sources.rglob("*") if path.is_file()):
        name = file.relative_to(sources).as_posix()
        digest.update(name.encode() + b"\0" + file.read_bytes())
    return digest.hexdigest()[:24]


def build_once(path: Path, build: Callable[[Path], Path]) -> None:
    """Make the file ``path`` unless it is there: ``build`` makes it in the folder that it gets.

    Safe to call from several processes at once: one builds, the others wait. The file is whole
    or not there.
    """
    if path.exists():
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    with (path.parent / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if path.exists():
            return
        with tempfile.TemporaryDirectory(prefix="nestor-build-") as folder:
            partial = path.with_suffix(".partial")
            shutil.copy2(build(Path(folder)), partial)
            partial.replace(path)
