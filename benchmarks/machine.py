"""Where a number was measured."""

import platform
from pathlib import Path

from nestor.compiler.toolchain import Toolchain
from nestor.processor import this_machine


def describe(toolchain: Toolchain) -> dict[str, str]:
    """Return the processor, the system and the versions that a number depends on."""
    words = [
        line.partition(":")[2].strip()
        for line in Path("/proc/cpuinfo").read_text().splitlines()
        if line.startswith("model name")
    ]
    load = Path("/proc/loadavg").read_text().split()[0]
    return {
        "processor": f"{len(words)} x {words[0] if words else platform.machine()}",
        "design": this_machine(),
        "system": platform.platform(),
        "load": load,
        "llvm": toolchain.version,
        "compiler": toolchain.build_id,
        "python": platform.python_version(),
    }
