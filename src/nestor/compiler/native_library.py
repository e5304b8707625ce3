"""Build a small C++ library of Nestor's own for this machine, once, and keep it.

It needs a C++17 compiler only (LLVM's clang++, or the system's), no development files. The cache is
keyed by the sources, the compiler and the processor, because the code is compiled for the latter.
"""

import ctypes
import fcntl
import functools
import hashlib
import platform
import shutil
from importlib import resources
from pathlib import Path

from nestor.compiler.plugin import cache_folder
from nestor.compiler.process import Limits, run
from nestor.compiler.toolchain import ToolchainError, discover

_OPTIONS = ("-std=c++17", "-O3", "-march=native", "-fPIC", "-shared", "-fvisibility=hidden")
# Predictions must not depend on how the compiler contracts floating-point operations.
_EXACT = ("-ffp-contract=off",)


def library_path(name: str) -> Path:
    """Return where the library ``name`` (a folder under ``native/``) is or will be."""
    digest = hashlib.sha256(_compiler().encode() + b"\0" + _processor().encode())
    digest.update(" ".join(_OPTIONS + _EXACT).encode())
    for file in _sources(name):
        digest.update(file.name.encode() + b"\0" + file.read_bytes())
    return cache_folder() / "native" / digest.hexdigest()[:24] / f"{name}.so"


@functools.cache
def load_library(name: str) -> ctypes.CDLL:
    """Return the library ``name``, building it if need be (about ten CPU-seconds).

    Safe to call from several processes at once: one builds, the others wait.

    :raises ToolchainError: if there is no C++ compiler or the build fails.
    """
    path = library_path(name)
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        with (path.parent / "lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not path.exists():
                _build(name, path)
    return ctypes.CDLL(str(path))


def _build(name: str, path: Path) -> None:
    partial = path.with_suffix(".partial")
    sources = [file for file in _sources(name) if file.suffix == ".cpp"]
    outcome = run([_compiler(), *_OPTIONS, *_EXACT, "-o", partial, *sources], Limits(seconds=300))
    if not outcome.ok:
        raise ToolchainError(
            f"The library '{name}' could not be built with {_compiler()} ({outcome.reason});"
            " check that the compiler supports C++17."
        )
    partial.replace(path)


def _sources(name: str) -> list[Path]:
    folder = Path(str(resources.files("nestor"))) / "native" / name
    return sorted(file for file in folder.iterdir() if file.suffix in (".cpp", ".h"))


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
