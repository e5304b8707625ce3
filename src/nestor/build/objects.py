"""Programs that are judged by the objects of their units: nothing is linked."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from nestor.build.assembly import Assembly, failed_assembly, sum_columns
from nestor.build.build import Build
from nestor.build.function_ids import name_id
from nestor.build.unit_build import UnitBuild
from nestor.corpus.model import Program
from nestor.problem.problem import Pool
from nestor.problem.rollout import Rollout


@dataclass(frozen=True)
class ObjectBuild(UnitBuild):
    """Adds the columns of a program's units up (:class:`nestor.build.build.Build`)."""

    name: ClassVar[str] = "objects"
    modes: ClassVar[tuple[str, ...]] = ("unlinked",)
    options: ClassVar[str] = ""

    def assemble(
        self,
        pool: Pool,
        program: Program,
        rollouts: Mapping[str, Rollout],
        mode: str,
        keep: bool = False,
    ) -> Assembly:
        """Add up the units of ``program``; there is no binary to keep."""
        missing = [name for name in program.modules if rollouts[name].outcome is None]
        if missing:
            return failed_assembly(f"not added up: no object for {missing[0]}")
        columns = {name: pool.problem.columns(done.outcome) for name, done in rollouts.items()}
        score = pool.problem.report.score
        return Assembly(
            sum_columns(list(columns.values())),
            None,
            lambda: {name: own[score] for name, own in columns.items()},
            lambda logs: {name_id(name): own[score] for name, own in columns.items()},
        )


def object_builds() -> Mapping[str, Build]:
    """Return the only build of a problem whose programs are judged without a link."""
    return {"objects": ObjectBuild()}
