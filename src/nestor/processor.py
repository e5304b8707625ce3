"""The name of the CPU that labels and results belong to, and which of its cores measures.

A name stands for a micro-architecture, not for a product: all that differs in products of one
core design (cache sizes, clock) does not matter to a block that stays in the first-level cache.
"""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from nestor.errors import NestorError

_AMD: Final = (
    # Family, models, name: as in Linux (arch/x86/kernel/cpu/amd.c) of 6.14.
    (0x17, ((0x00, 0x2F), (0x50, 0x5F)), "AMD Zen"),
    (0x17, ((0x30, 0x4F), (0x60, 0x7F), (0x90, 0x91), (0xA0, 0xAF)), "AMD Zen 2"),
    (0x19, ((0x00, 0x0F), (0x20, 0x5F)), "AMD Zen 3"),
    (0x19, ((0x10, 0x1F), (0x60, 0xAF)), "AMD Zen 4"),
    (0x1A, ((0x00, 0x2F), (0x40, 0x4F), (0x60, 0x7F)), "AMD Zen 5"),
    (0x1A, ((0x50, 0x5F), (0x80, 0xAF), (0xC0, 0xCF)), "AMD Zen 6"),
)
_INTEL: Final = {
    # Models of family 6: as in Linux (arch/x86/include/asm/intel-family.h).
    "Intel Haswell": (0x3C, 0x3F, 0x45, 0x46),
    "Intel Broadwell": (0x3D, 0x47, 0x4F, 0x56),
    "Intel Skylake": (0x4E, 0x5E, 0x8E, 0x9E, 0xA5, 0xA6),
    "Intel Skylake-X": (0x55,),
    "Intel Ice Lake": (0x6A, 0x6C, 0x7D, 0x7E),
    "Intel Sapphire Rapids": (0x8F, 0xCF),
    "Intel Redwood Cove": (0xAD, 0xAE),
}


def this_machine(cpuinfo: Path = Path("/proc/cpuinfo")) -> str:
    """Return the name of this machine's CPU, for example ``AMD Zen 5``.

    What the table does not know goes by its brand string; a machine that says nothing is
    ``unknown``.
    """
    try:
        first = cpuinfo.read_text(errors="replace").split("\n\n")[0]
    except OSError:
        return "unknown"
    pairs = (line.split(":", 1) for line in first.splitlines() if ":" in line)
    return name_of({key.strip(): value.strip() for key, value in pairs})


def name_of(facts: Mapping[str, str]) -> str:
    """Return the name for the facts of one CPU as ``/proc/cpuinfo`` gives them."""
    try:
        family, model = int(facts["cpu family"]), int(facts["model"])
    except (KeyError, ValueError):
        family = model = -1
    if facts.get("vendor_id") == "AuthenticAMD":
        for of_family, ranges, name in _AMD:
            if family == of_family and any(low <= model <= high for low, high in ranges):
                return name
    if facts.get("vendor_id") == "GenuineIntel" and family == 6:
        for name, models in _INTEL.items():
            if model in models:
                return name
    return facts.get("model name") or "unknown"


def measuring_core(core: int | None) -> int:
    """Return the number of the core to measure on.

    :param core: what a user names by ``--core``; None: the last one that this process may use.
    :raises NestorError: if the machine has no such core.
    """
    last = (os.cpu_count() or 1) - 1
    if core is None:
        return max(os.sched_getaffinity(0))
    if not 0 <= core <= last:
        raise NestorError(f"--core is one of 0 to {last}, not {core}.")
    return core
