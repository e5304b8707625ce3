"""A library that gives a measured program the same times in each run; built once, and kept."""

from importlib import resources
from pathlib import Path
from typing import Final

from nestor.compiler.cache import cache_place
from nestor.compiler.process import run
from nestor.compiler.toolchain import Toolchain
from nestor.errors import NestorError
from nestor.files import replacing, sha256_of

NAME: Final = "fixed-time.so"


def source() -> Path:
    """Return the library's source, which says what it does."""
    return Path(str(resources.files("nestor"))) / "native" / "workload" / "FixedTime.c"


def fixed_time_library(toolchain: Toolchain) -> Path:
    """Return the library, built by ``toolchain`` if it is not in the cache.

    :raises NestorError: if it cannot be built.
    """
    place = (
        Path(cache_place()) / "workload" / f"{sha256_of(source())[:16]}-{toolchain.build_id[:16]}"
    )
    library = place / NAME
    if library.exists():
        return library
    with replacing(library) as scratch:
        outcome = run([toolchain.clang, "-O2", "-fPIC", "-shared", "-o", scratch, source()])
        if not outcome.ok:
            raise NestorError(f"The library of fixed times cannot be built: {outcome.reason}.")
    return library
