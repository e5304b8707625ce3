"""Programs linked by LTO and run: what a run executes is the score, as without LTO.

Calls are decided inside the linker, where the whole program is in view; what the compiler inlines
in each module before is stock's.
"""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Final

from nestor.build.assembly import Assembly, failed_assembly
from nestor.build.build import Job
from nestor.build.linking import Link
from nestor.build.lto import LtoBuild
from nestor.build.lto_link import LtoLink
from nestor.compiler.objects import Function, Measure
from nestor.corpus.relink import LinkMode
from nestor.problem.problem import Pool
from nestor.problems.inlining_speed.run_build import MODES, counted
from nestor.problems.inlining_speed.spent import Spend, executed

_UNNAMED: Final = ""
"""The unit of functions that no back end's log names."""


@dataclass(frozen=True)
class LtoRunBuild(LtoBuild):
    """Links programs by LTO, without sections that nothing uses, and counts their runs."""

    modes: tuple[str, ...] = MODES
    spend: Spend = executed
    """What a run costs."""
    needs_binary: ClassVar[bool] = True

    def link_mode(self, mode: str) -> LinkMode:
        """Return the only one: the modes of this build are inputs."""
        return "gc"

    def assemble(self, pool: Pool, job: Job, link: LtoLink) -> Assembly:
        """Count the runs of the kind that is the job's mode."""
        if link.measure is None or link.digest is None:
            return failed_assembly(link.failure or "not linked")
        sizes = functions_by_back_end(link.measure, link)
        kept = {(unit, one.name) for unit, own in sizes.items() for one in own.functions}
        linked = Link(link.measure, frozenset(kept), None)
        binary = pool.objects.path(link.digest)
        return counted(pool, job.program, job.mode, binary, linked, sizes, self.spend)


def functions_by_back_end(program: Measure, link: LtoLink) -> Mapping[str, Measure]:
    """Return the functions of ``program`` by the first back end whose log names them.

    Thin LTO copies what it inlines from other modules, so several logs may name one function.
    """
    owners: dict[str, str] = {}
    for back_end, log in link.trajectories.items():
        for name in log.names.values():
            owners.setdefault(name, back_end)
    found: defaultdict[str, list[Function]] = defaultdict(list)
    for function in program.functions:
        found[owners.get(function.name, _UNNAMED)].append(function)
    return {unit: Measure({}, tuple(own)) for unit, own in found.items()}
