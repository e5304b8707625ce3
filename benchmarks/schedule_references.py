"""Libraries that kernels of schedules are compared with, each called as users would.

    python -m benchmarks.schedule_references    # which there are here, and what each has chosen

Every name says which instruction set the library has chosen in this process. What is not
installed is left out: MKL comes from its wheel (``pip install 'nestor-mlgo[references]'``), oneDNN
from ``libdnnl2``, libxsmm from ``libxsmm-dev``; the OpenBLAS of numpy's wheel is always there.
All use one thread, if ``ONE_THREAD`` is in the environment before they are loaded.
"""

import contextlib
import ctypes
import ctypes.util
import importlib.metadata
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from nestor.compiler.cache import cache_place
from nestor.schedules.target import host
from nestor.schedules.tools import find_tools

ONE_THREAD: Final = dict.fromkeys(
    ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1"
) | {"MKL_THREADING_LAYER": "SEQUENTIAL"}
"""What the process must have in its environment."""

Array = npt.NDArray[Any]
Product = Callable[[Array, Array, Array], None]
"""Left and right matrix, and where the product goes: C-contiguous float32."""

_ROWS, _PLAIN = 101, 111  # CblasRowMajor, CblasNoTrans
_FORCED: Final = "forced-"
"""How the names of copies begin that are forced to a core type."""
_LIBXSMM: Final = Path("/usr/lib/libxsmm.a")


def products(m: int, n: int, k: int) -> dict[str, Product]:
    """Return the libraries that multiply an ``m`` by ``k`` and a ``k`` by ``n`` matrix, by name."""
    found: dict[str, Product | None] = {}
    for maker in (_openblas, _forced_openblas, _mkl, _onednn):
        with contextlib.suppress(OSError, importlib.metadata.PackageNotFoundError):
            name, call = maker()
            found[name] = call
    with contextlib.suppress(OSError):
        name, kernel = _libxsmm(m, n, k)
        found[name] = kernel
    return {name: call for name, call in found.items() if call is not None}


def _loaded_openblas() -> Path:
    for line in Path("/proc/self/maps").read_text().splitlines():
        path = Path(line.split()[-1])
        own = not path.name.startswith(_FORCED)
        if own and "openblas" in path.name and ".so" in path.name:
            return path
    raise OSError("numpy has no OpenBLAS")


def _cblas(library: ctypes.CDLL, symbol: str, wide: bool) -> Product:
    function = getattr(library, symbol)
    integer, number, pointer = (
        (ctypes.c_int64 if wide else ctypes.c_int), ctypes.c_float, ctypes.c_void_p,
    )  # fmt: skip
    function.argtypes = [*[ctypes.c_int] * 3, *[integer] * 3, number, pointer, integer, pointer,
                         integer, number, pointer, integer]  # fmt: skip
    function.restype = None

    def product(a: Array, b: Array, c: Array) -> None:
        (m, k), n = a.shape, b.shape[1]
        function(
            _ROWS, _PLAIN, _PLAIN, m, n, k, 1.0, a.ctypes.data, k, b.ctypes.data, n, 0.0,
            c.ctypes.data, n,
        )  # fmt: skip

    return product


def _openblas(path: Path | None = None) -> tuple[str, Product]:
    library = ctypes.CDLL(str(path or _loaded_openblas()))
    core = library.scipy_openblas_get_corename64_
    core.restype = ctypes.c_char_p
    how = "as installed" if path is None else "forced"
    name = f"OpenBLAS {how}: {core().decode()}"
    return name, _cblas(library, "scipy_cblas_sgemm64_", wide=True)


def _forced_openblas() -> tuple[str, Product]:
    """Load a second copy of numpy's OpenBLAS that is forced to the widest core type."""
    own = _loaded_openblas()
    copy = Path(cache_place()) / f"{_FORCED}{own.name}"
    if not copy.exists():
        shutil.copyfile(own, copy)
    before = os.environ.get("OPENBLAS_CORETYPE")
    core = "SkylakeX" if "avx512f" in host().features else "Haswell"
    os.environ["OPENBLAS_CORETYPE"] = core if before is None else before
    try:
        return _openblas(copy)
    finally:
        if before is None:
            del os.environ["OPENBLAS_CORETYPE"]


class _MklVersion(ctypes.Structure):
    _fields_ = [
        *[(name, ctypes.c_int) for name in ("major", "minor", "update")],
        *[(name, ctypes.c_char_p) for name in ("status", "build", "processor", "platform")],
    ]


def _mkl() -> tuple[str, Product]:
    files = importlib.metadata.files("mkl") or []
    (entry,) = [f for f in files if f.name.startswith("libmkl_rt.so")]
    library = ctypes.CDLL(str(Path(str(entry.locate())).resolve()))
    version = _MklVersion()
    library.mkl_get_version(ctypes.byref(version))
    processor = (version.processor or b"").decode()
    words = f"MKL {importlib.metadata.version('mkl')}: {_short(processor)}"
    return words, _cblas(library, "cblas_sgemm", wide=False)


def _short(processor: str) -> str:
    """Return ``AVX2`` of 'Intel(R) Advanced Vector Extensions 2 (Intel(R) AVX2) enabled …'."""
    found = [w.strip("()") for w in processor.replace("Intel(R)", "").split() if "AVX" in w]
    return found[-1] if found else processor or "unknown"


def _onednn() -> tuple[str, Product]:
    library = ctypes.CDLL(ctypes.util.find_library("dnnl") or "libdnnl.so.2")

    class Version(ctypes.Structure):
        _fields_ = [("major", ctypes.c_int), ("minor", ctypes.c_int), ("patch", ctypes.c_int)]

    library.dnnl_version.restype = ctypes.POINTER(Version)
    version = library.dnnl_version().contents
    isa = int(library.dnnl_get_effective_cpu_isa())
    # Each bit stands for one instruction set; 0x20 and above have AVX-512 (dnnl_types.h).
    chosen = "AVX512" if isa & ~0x1F else "AVX2" if isa & 0x4 else "SSE4.1"
    function = library.dnnl_sgemm
    integer, pointer = ctypes.c_int64, ctypes.c_void_p
    function.argtypes = [ctypes.c_char, ctypes.c_char, *[integer] * 3, ctypes.c_float, pointer,
                         integer, pointer, integer, ctypes.c_float, pointer, integer]  # fmt: skip

    def product(a: Array, b: Array, c: Array) -> None:
        (m, k), n = a.shape, b.shape[1]
        function(
            b"N", b"N", m, n, k, 1.0, a.ctypes.data, k, b.ctypes.data, n, 0.0, c.ctypes.data, n
        )

    return f"oneDNN {version.major}.{version.minor}: {chosen} (mask {isa:#x})", product


def _libxsmm(m: int, n: int, k: int) -> tuple[str, Product | None]:
    """Return libxsmm's kernel for one shape; None where it has none (it is for small ones)."""
    if not _LIBXSMM.exists():
        raise OSError("libxsmm-dev is not installed")
    shared = Path(cache_place()) / "libxsmm.so"
    if not shared.exists():
        shared.parent.mkdir(parents=True, exist_ok=True)
        whole = ["-Wl,--whole-archive", _LIBXSMM, _LIBXSMM.with_name("libxsmmnoblas.a")]
        command = [find_tools().clang, "-shared", *whole, "-Wl,--no-whole-archive", "-lm",
                   "-lpthread", "-ldl", "-o", shared]  # fmt: skip
        subprocess.run([str(word) for word in command], check=True, capture_output=True)
    library = ctypes.CDLL(str(shared))
    library.libxsmm_init()
    library.libxsmm_get_target_arch.restype = ctypes.c_char_p
    name = f"libxsmm: {library.libxsmm_get_target_arch().decode()}"
    dispatch = library.libxsmm_smmdispatch
    dispatch.restype = ctypes.c_void_p
    # Columns first, so the operands change places; beta is 0.
    zero = ctypes.byref(ctypes.c_float(0.0))
    nothing = [None] * 3
    address = dispatch(n, m, k, *nothing, None, zero, None, None)
    if not address:
        return name, None
    call = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 3)(address)
    return name, lambda a, b, c: call(b.ctypes.data, a.ctypes.data, c.ctypes.data)


def fused(product: Product, bias: Array, *, gelu: bool = False) -> Product:
    """Return a product that is followed by numpy: a bias and ReLU, or GELU (tanh)."""

    def call(a: Array, b: Array, c: Array) -> None:
        product(a, b, c)
        np.add(c, bias, out=c)
        if gelu:
            inner = 0.7978845608 * (c + 0.044715 * c * c * c)
            np.multiply(0.5 * c, 1.0 + np.tanh(inner), out=c)
        else:
            np.maximum(c, 0.0, out=c)

    return call


def main() -> int:
    """Print the libraries that are there, each after a product that is right; 1 if one is not."""
    if any(os.environ.get(name) != value for name, value in ONE_THREAD.items()):
        # Libraries read these when they are loaded, and numpy is loaded already.
        words = [sys.executable, "-m", "benchmarks.schedule_references"]
        return subprocess.run(words, env=os.environ | ONE_THREAD).returncode
    random = np.random.default_rng(0)
    a, b = (random.standard_normal(shape).astype(np.float32) for shape in ((64, 32), (32, 48)))
    found = products(64, 48, 32)
    wrong = 0
    for name, product in found.items():
        c = np.empty((64, 48), np.float32)
        product(a, b, c)
        right = np.allclose(c, a @ b, rtol=1e-4, atol=1e-4)
        wrong += not right
        print(name if right else f"{name}: wrong")
    with contextlib.suppress(ImportError):
        import torch

        print(f"PyTorch {torch.__version__}: {torch.backends.cpu.get_cpu_capability()}")
    remedies = {
        "MKL": "pip install 'nestor-mlgo[references]'",
        "oneDNN": "apt-get install libdnnl2",
        "libxsmm": "apt-get install libxsmm-dev",
    }
    for library, remedy in remedies.items():
        if not any(name.startswith(library) for name in found):
            print(f"{library} is missing: {remedy}")
    return int(wrong > 0)


if __name__ == "__main__":
    raise SystemExit(main())
