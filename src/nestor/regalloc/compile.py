"""One rollout: a module compiled by clang with the plugin, and the plugin's logs read."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from nestor.compiler.invocation import compile_command
from nestor.compiler.process import Ending, Outcome, run
from nestor.corpus.model import CorpusError, Module
from nestor.problem.places import (
    FRAME,
    Places,
    function_places,
    read_remarks,
    remark_flags,
)
from nestor.problem.rollout import Request, Rollout, Workplace
from nestor.problem.trajectory import LogError, Trajectory
from nestor.regalloc import allocation_log
from nestor.regalloc.allocation_log import FunctionAllocation
from nestor.regalloc.credit import with_weighted_labels
from nestor.regalloc.outcome import ModuleCost
from nestor.regalloc.plugin_flags import Decision, Logs, as_flags, request_options
from nestor.regalloc.weights import measured_calls
from nestor.temporary import temporary_folder

ReadLog = Callable[[Path], Trajectory]
"""Reads the trajectory that the plugin wrote."""


def compile_module(
    request: Request, place: Workplace, decision: Decision, read_log: ReadLog, labels: int = 0
) -> Rollout:
    """Compile ``request.unit`` and read what came of it; the outcome is a ``ModuleCost``.

    The stock compiler runs with the plugin too, which then only observes what was allocated.

    :param labels: as in :func:`nestor.regalloc.plugin_flags.request_options`.
    """
    with temporary_folder("rollout") as text:
        folder = Path(text)
        questions = folder / "questions" if request.log and request.policy is not None else None
        logs = Logs(folder / "allocations", questions)
        out = folder / "module.o"
        options = request_options(request, decision, place.files, logs, labels)
        remarks = folder / "remarks"
        more = remark_flags(remarks, FRAME) if request.places else ()
        process = run_plugin(request.unit, place, out, options, more)
        if not process.ok:
            return Rollout.failed(request, process.reason, process.cpu_seconds)
        try:
            functions = allocation_log.read(logs.allocations)
            outcome = ModuleCost.of(functions, measured_calls(place.corpus, request.unit))
            log = None if questions is None else read_log(questions)
        except (LogError, CorpusError) as error:
            reason = f"{Ending.FAILED.value}: {error}"
            return Rollout.failed(request, reason, process.cpu_seconds)
        found = None
        if request.places and log is not None:  # live ranges have no place, functions have one
            found = Places(("",) * len(log), function_places(read_remarks(remarks)))
        if log is not None:
            names = names_of(functions) if request.names else {}
            log = replace(with_weighted_labels(log, outcome), names=names)
        kept = place.objects.put(out) if request.keep else None
        return Rollout(request, outcome, log, process.cpu_seconds, None, kept, found)


def run_plugin(
    unit: Module, place: Workplace, out: Path, options: Sequence[str], more: Sequence[str] = ()
) -> Outcome:
    """Compile ``unit`` into ``out``; ``options`` are the plugin's, ``more`` those of cc1."""
    command = compile_command(
        place.plugin.toolchain,
        unit.options,
        place.corpus.bitcode(unit),
        out,
        [*as_flags(place.plugin, options), *more],
    )
    return run(command, place.limits, cancelled=place.cancelled)


def names_of(functions: tuple[FunctionAllocation, ...]) -> dict[int, str]:
    """Return the name of each function that was allocated, asked about or not, by its id."""
    return {function.id: function.name for function in functions}
