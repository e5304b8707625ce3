"""The processor that a kernel is made for: what schedules and the compiler must know of it."""

import functools
import platform
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from nestor.errors import NestorError, meant
from nestor.processor import this_machine

_CACHES: Final = Path("/sys/devices/system/cpu/cpu0/cache")
_CPU: Final = Path("/proc/cpuinfo")


@dataclass(frozen=True)
class Target:
    """One kind of processor."""

    name: str
    """For example ``host`` or ``avx2``."""
    processor: str
    """The name of its design, such as ``AMD Zen 3``, or LLVM's name of an instruction set."""
    vector_bits: int
    """Width of the widest vector register that arithmetic should use."""
    registers: int
    """Number of vector registers."""
    l1_bytes: int
    """First level data cache of one core."""
    l2_bytes: int
    l3_bytes: int
    flags: tuple[str, ...]
    """The words for clang that choose the instruction set."""
    features: frozenset[str] = frozenset()
    """Instruction sets beyond the base that schedules ask for: ``avx512_bf16``, ``avx512_vnni``."""
    triple: str | None = None
    """None: that of this machine."""

    def lanes(self, bits: int) -> int:
        """Return how many elements of ``bits`` bits one vector register holds."""
        return max(1, self.vector_bits // bits)

    def describe(self) -> dict[str, Any]:
        """Return the target for a result in JSON."""
        return asdict(self) | {"features": sorted(self.features)}


@functools.cache
def host() -> Target:
    """Return the processor of this machine, from its own words about itself."""
    flags, name = _flags(), this_machine()
    l1, l2, l3 = _caches()
    if platform.machine() not in ("x86_64", "AMD64"):
        name = platform.machine() if name == "unknown" else name
        return Target("host", name, 128, 32, l1, l2, l3, ("-mcpu=native",))
    wide = {"avx512f", "avx512vl", "avx512bw", "avx512dq"} <= flags
    bits = 512 if wide else 256 if "avx2" in flags else 128
    own = frozenset(flags & {"avx512_bf16", "avx512_vnni", "avx_vnni", "fma", "avx2", "avx512f"})
    words: tuple[str, ...] = ("-march=native",)
    if wide:
        # Without it some processors get code for half of their vector registers.
        words += ("-Xclang", "-target-feature", "-Xclang", "-prefer-256-bit")
    return Target("host", name, bits, 32 if wide else 16, l1, l2, l3, words, own)


def _named() -> Mapping[str, Target]:
    l1, l2, l3 = _caches()
    x86 = "x86_64-linux-gnu"
    return {
        "avx512": Target(
            "avx512", "x86-64-v4", 512, 32, l1, l2, l3,
            ("-march=x86-64-v4", "-Xclang", "-target-feature", "-Xclang", "-prefer-256-bit"),
            frozenset({"avx512f", "avx2", "fma"}), x86,
        ),
        "avx2": Target(
            "avx2", "x86-64-v3", 256, 16, l1, l2, l3, ("-march=x86-64-v3",),
            frozenset({"avx2", "fma"}), x86,
        ),
        "sse2": Target(
            "sse2", "x86-64", 128, 16, l1, l2, l3, ("-march=x86-64",), triple=x86
        ),
        "neon": Target(
            "neon", "armv8-a", 128, 32, 64 << 10, 1 << 20, 32 << 20, ("-march=armv8-a",),
            triple="aarch64-linux-gnu",
        ),
    }  # fmt: skip


def names() -> list[str]:
    """Return the names that :func:`find_target` takes."""
    return ["host", *_named()]


def find_target(name: str) -> Target:
    """Return a target by its name.

    :raises NestorError: if there is none of that name.
    """
    if name == "host":
        return host()
    if name not in _named():
        near = meant(name, names())
        raise NestorError(f"There is no target '{name}'{near}; there are {', '.join(names())}.")
    return _named()[name]


def find_own_target(name: str) -> Target:
    """Return a target by its name, if this machine runs code for it.

    :raises NestorError: if there is none of that name, or its code does not run here.
    """
    target = find_target(name)
    there, here = (target.triple or "").partition("-")[0], platform.machine().lower()
    same = target.triple is None or there == {"amd64": "x86_64", "arm64": "aarch64"}.get(here, here)
    missing = sorted(target.features - _flags())
    if not same or missing:
        why = f"it has no {missing[0]}" if same else f"its processor is {here}"
        raise NestorError(
            f"This machine cannot run kernels for '{name}': {why}. Make an object for another"
            f" machine by 'nestor schedule apply PAYLOAD --target {name} --object FILE'."
        )
    return target


def _flags() -> set[str]:
    """Return what the processor says that it can do."""
    try:
        text = _CPU.read_text()
    except OSError:
        return set()
    flags = re.search(r"^(?:flags|Features)\s*:\s*(.*)$", text, re.MULTILINE)
    return set(flags[1].split() if flags else ())


def _caches() -> tuple[int, int, int]:
    """Return the bytes of the data caches of levels 1 to 3; usual sizes where none are told."""
    sizes = {1: 32 << 10, 2: 1 << 20, 3: 16 << 20}
    for entry in sorted(_CACHES.glob("index*")):
        try:
            kind = (entry / "type").read_text().strip()
            level = int((entry / "level").read_text())
            size = (entry / "size").read_text().strip()
        except (OSError, ValueError):
            continue
        if kind != "Instruction" and (match := re.fullmatch(r"(\d+)([KM]?)", size)):
            sizes[level] = int(match[1]) << {"": 0, "K": 10, "M": 20}[match[2]]
    return sizes[1], sizes[2], sizes[3]
