"""Build a small C++ library of Nestor's own for this machine, once, and keep it.

It needs a C++17 compiler only (LLVM's clang++, or the system's), no development files. The cache is
keyed by the sources, the compiler and the processor, because the code is compiled for the latter.
"""

import ctypes
import functools
import platform
import shutil
from importlib import resources
from pathlib import Path

from nestor.compiler.built import build_once, digest_of
from nestor.compiler.plugin import cache_folder
from nestor.compiler.process import Limits, run
from nestor.compiler.toolchain import ToolchainError, discover

_OPTIONS = ("-std=c++17", "-O3", "-march=native", "-fPIC", "-shared", "-fvisibility=hidden")
# Predictions must not depend on how the compiler contracts floating-point operations.
_EXACT = ("-ffp-contract=off",)


def library_path(name: str) -> Path:
    """Return where the library ``name`` (a folder under ``native/``) is or will be."""
    builder = "\0".join((_compiler(), _processor(), *_OPTIONS, *_EXACT))
    return cache_folder() / "native" / digest_of(_folder(name), builder) / f"{name}.so"


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
    made = folder / f"{name}.so"
    sources = sorted(_folder(name).glob("*.cpp"))
    outcome = run([_compiler(), *_OPTIONS, *_EXACT, "-o", made, *sources], Limits(seconds=300))
    if not outcome.ok:
        raise ToolchainError(
            f"The library '{name}' could not be built with {_compiler()} ({outcome.reason});"
            " check that the compiler supports C++17."
        )
    return made


def _folder(name: str) -> Path:
    return Path(str(resources.files("nestor"))) / "native" / name


@functools.cache
def _compiler() -> str:
    """Return the C++ compiler to use: LLVM's, or the one of the system."""
    for toolchain in discover():
        if toolchain.clangxx.exists():
            return str(toolchain.clangxx)
    for name in ("clang++", "g++", "c++"):
        found = shutil.which(name)
        if found:
            return found
    raise ToolchainError("There is no C++ compiler: install clang-22 or g++.")


@functools.cache
def _processor() -> str:
    """Return what decides which instructions ``-march=native`` means."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    kept = {
        line for line in lines if line.startswith(("vendor_id", "model", "cpu family", "flags"))
    }
    return "\n".join(sorted(kept))
