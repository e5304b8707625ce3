"""Build a small C++ library of Nestor's own for this machine, once, and keep it in the cache.

The cache is keyed by the sources, the compiler and the processor, because the code is compiled for
the latter (``-march=native``).
"""

import ctypes
import functools
import platform
from importlib import resources
from pathlib import Path
from typing import Final

from nestor.compiler.built import build_once, digest_of
from nestor.compiler.plugin import cache_folder
from nestor.compiler.process import Limits, run
from nestor.compiler.toolchain import ToolchainError
from nestor.cost.native.host_compiler import host_compiler

OPTIONS: Final = (
    "-std=c++17", "-O3", "-march=native", "-fPIC", "-shared", "-fvisibility=hidden",
    "-ffp-contract=off",  # answers must not depend on which operations the compiler fuses
)  # fmt: skip


def source_folder(name: str) -> Path:
    """Return the folder of the C++ sources of the library ``name``."""
    return Path(str(resources.files("nestor"))) / "native" / name


def library_path(name: str) -> Path:
    """Return where the library ``name`` (a folder under ``native/``) is or will be."""
    builder = "\0".join((host_compiler("c++"), _processor(), *OPTIONS))
    return cache_folder() / "native" / digest_of(source_folder(name), builder) / f"{name}.so"


@functools.cache
def load_library(name: str) -> ctypes.CDLL:
    """Return the library ``name``, building it if need be (about ten CPU-seconds).

    Safe to call from several processes at once: one builds, the others wait.

    :raises ToolchainError: if there is no C++ compiler or the build fails.
    """
    path = library_path(name)
    build_once(path, lambda folder: _build(name, folder))
    return ctypes.CDLL(str(path))


def _build(name: str, folder: Path) -> Path:
    result = folder / f"{name}.so"
    sources = sorted(source_folder(name).glob("*.cpp"))
    compiler = host_compiler("c++")
    outcome = run([compiler, *OPTIONS, "-o", result, *sources], Limits(seconds=300))
    if not outcome.ok:
        raise ToolchainError(
            f"The library '{name}' could not be built with {compiler} ({outcome.reason});"
            " check that the compiler supports C++17."
        )
    return result


@functools.cache
def _processor() -> str:
    """Return what decides which instructions ``-march=native`` means."""
    try:
        lines = Path("/proc/cpuinfo").read_text(errors="replace").splitlines()
    except OSError:
        return platform.processor()
    wanted = {
        line for line in lines if line.startswith(("vendor_id", "model", "cpu family", "flags"))
    }
    return "\n".join(sorted(wanted))
