"""Files of the cache that are used only if they are what was written.

A disk that was full, a crash or a copy can leave a file that is cut short or altered. An object
therefore has its SHA-256 in a file beside it, and arrays have the checksums of their archive. What
fails the check counts as absent: it is made again and replaced.
"""

import io
import shutil
import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from nestor.files import replacing, sha256_of, write_atomically

Arrays = Mapping[str, npt.NDArray[Any]]

_DAMAGED = (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile, zlib.error)


def keep(file: Path, kept: Path) -> None:
    """Copy ``file`` to ``kept``, which no reader and no other process ever sees in part.

    :raises OSError: if it cannot be written.
    """
    digest = sha256_of(file)
    with replacing(kept) as scratch:
        shutil.copyfile(file, scratch)
    write_atomically(_digest_file(kept), digest)


def is_whole(kept: Path) -> bool:
    """Tell whether ``kept`` is there, with the content that was put there."""
    try:
        return sha256_of(kept) == _digest_file(kept).read_text()
    except (OSError, UnicodeDecodeError):
        return False


def keep_arrays(arrays: Arrays, kept: Path) -> None:
    """Write ``arrays`` to ``kept``, whole or not at all.

    :raises OSError: if it cannot be written.
    """
    data = io.BytesIO()
    np.savez_compressed(data, **arrays)  # type: ignore[arg-type]
    write_atomically(kept, data.getvalue())


def read_arrays(kept: Path) -> dict[str, npt.NDArray[Any]] | None:
    """Return the arrays in ``kept``; None if they are not there, or not as they were written."""
    try:
        with np.load(kept, allow_pickle=False) as arrays:
            return dict(arrays.items())
    except _DAMAGED:
        return None


def _digest_file(kept: Path) -> Path:
    return kept.with_suffix(".sha256")
