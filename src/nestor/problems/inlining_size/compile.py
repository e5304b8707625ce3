"""One rollout: a module compiled by clang with the plugin, measured, and its log read."""

from pathlib import Path

from nestor.compiler.invocation import compile_command
from nestor.compiler.objects import ObjectError, measure
from nestor.compiler.process import Ending, run
from nestor.problem.places import FRAME, read_remarks, remark_flags
from nestor.problem.rollout import Request, Rollout, Workplace
from nestor.problem.trajectory import LogError
from nestor.problems.inlining_size.log import read
from nestor.problems.inlining_size.places import REMARKS, places
from nestor.problems.inlining_size.plugin_flags import request_flags
from nestor.temporary import temporary_folder


def compile_module(request: Request, place: Workplace) -> Rollout:
    """Compile ``request.unit`` and read what came of it; the outcome is a ``Measure``."""
    with temporary_folder("rollout") as text:
        return _compile(request, place, Path(text))


def _compile(request: Request, place: Workplace, folder: Path) -> Rollout:
    out, log, remarks = folder / "module.o", folder / "log", folder / "remarks"
    flags = request_flags(request, place.plugin, place.files, log)
    if request.places:
        flags += remark_flags(remarks, REMARKS, FRAME)
    command = compile_command(
        place.plugin.toolchain,
        request.unit.options,
        place.corpus.bitcode(request.unit),
        out,
        flags,
    )
    process = run(command, place.limits, cancelled=place.cancelled)
    if not process.ok:
        return Rollout.failed(request, process.reason, process.cpu_seconds)
    try:
        sizes = measure(out)
        trajectory = read(log) if request.log else None
        found = None
        if request.places and trajectory is not None:
            found = places(trajectory, read_remarks(remarks))
    except (ObjectError, LogError) as error:
        reason = f"{Ending.FAILED.value}: {error}"
        return Rollout.failed(request, reason, process.cpu_seconds)
    kept = place.objects.put(out) if request.keep else None
    return Rollout(request, sizes, trajectory, process.cpu_seconds, None, kept, found)
