"""Make a kernel, verify it and time it: what ``run`` and ``replay`` show."""

from pathlib import Path
from typing import Any

from nestor.schedules.kernel.building import build_library
from nestor.schedules.kernel.lowering import lower
from nestor.schedules.kernel.measure import Settings, measure
from nestor.schedules.language.linking import Linked
from nestor.schedules.payload.loops import loops_of
from nestor.schedules.payload.reading import Payload
from nestor.schedules.target import Target
from nestor.schedules.tools import Tools
from nestor.temporary import temporary_folder


def run_once(
    payload: Payload, linked: Linked, target: Target, tools: Tools, settings: Settings
) -> dict[str, Any]:
    """Return the result of a run, as it is printed in JSON.

    :raises LoweringError: if the payload cannot be lowered.
    :raises RunError: if the kernel crashes or exceeds its limits.
    """
    lowered = lower(payload, linked, tools)
    with temporary_folder("kernel") as name:
        file = Path(name) / "kernel.so"
        build_library(lowered, target, tools, file)
        measured = measure({"kernel": file}, payload, tools, settings)
    return {
        "function": payload.name,
        "target": target.describe(),
        "llvm": tools.version,
        "numpy": measured.numpy,
        "threads": settings.threads if "omp.parallel" in lowered.text else 1,
        "verdict": dict(measured.verdicts["kernel"]),
        "seconds": {n: {"min": t.least, "median": t.middle} for n, t in measured.timings.items()},
        "operations": loops_of(payload).operations,
    }
