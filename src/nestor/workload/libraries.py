"""The libraries of a program as they are on this machine: what a run executes is partly theirs.

Finding them is, too: the dynamic linker searches its cache, which every installed library makes
longer.
"""

import functools
from pathlib import Path
from typing import Final

from nestor.compiler.process import run_tool
from nestor.files import sha256_of

_CACHE: Final = Path("/etc/ld.so.cache")
"""Of the dynamic linker (ld.so(8))."""


def loaded_by(binary: Path, cache: Path = _CACHE) -> list[tuple[str, str]]:
    """Return the files that starting ``binary`` reads, each with its SHA-256; sorted.

    A program without shared libraries has only the cache; a file that cannot be read has no digest.
    """
    paths = {cache}
    try:
        lines = run_tool(["ldd", str(binary)]).stdout.splitlines()
    except OSError:  # no dynamic linker to ask
        lines = []
    for line in lines:
        paths |= {Path(word) for word in line.split() if word.startswith("/")}
    return sorted((str(path), _digest(path)) for path in paths)


def _digest(path: Path) -> str:
    try:
        stamp = path.stat()
        return _digest_of(path, stamp.st_size, stamp.st_mtime_ns)
    except OSError:
        return ""


@functools.lru_cache(maxsize=1024)
def _digest_of(path: Path, size: int, modified: int) -> str:
    return sha256_of(path)
