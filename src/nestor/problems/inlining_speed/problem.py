"""Inlining for speed: which call sites to inline at -O2, judged by what programs execute."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from nestor.build.build import Build
from nestor.corpus.model import Program
from nestor.policy.rule import THRESHOLD
from nestor.policy.spec import Policy
from nestor.policy.trees import TreesPolicy
from nestor.problem.benefit import Benefits
from nestor.problem.problem import Pool, Problem, ProblemError
from nestor.problem.rollout import Rollout
from nestor.problem.score import Report, Scorers
from nestor.problem.trajectory import Trajectory
from nestor.problems.inlining_size.log import DEFAULT
from nestor.problems.inlining_size.places import STOCK_REMARKS
from nestor.problems.inlining_size.plugin_flags import lto_flags
from nestor.problems.inlining_size.problem import InliningSize
from nestor.problems.inlining_size.score import credit as site_credit
from nestor.problems.inlining_speed.benefits import benefits
from nestor.problems.inlining_speed.builtins import BUILTINS
from nestor.problems.inlining_speed.features import FEATURES
from nestor.problems.inlining_speed.in_builds import LEVELS, NAME
from nestor.problems.inlining_speed.lto_run_build import LtoRunBuild
from nestor.problems.inlining_speed.moves import SpeedMoves
from nestor.problems.inlining_speed.restraint import restrained
from nestor.problems.inlining_speed.run_build import RunBuild
from nestor.problems.inlining_speed.spent import CYCLES, executed, predicted
from nestor.progress import Progress, silent
from nestor.workload.counts import RUN_COLUMNS, J


class CallProfiles:
    """See :class:`nestor.problem.benefit.Profiles`."""

    def benefits(self, trajectory: Trajectory, counted: Trajectory) -> Benefits:
        """Return what inlining each call would save of a run, and cost of the code."""
        return benefits(trajectory, counted)


@dataclass(frozen=True)
class InliningSpeed(InliningSize):
    """Asks as inlining for size does, at other levels; a whole program's run is the score."""

    def builds(self) -> Mapping[str, Build]:
        """Return the links whose program is run: of stand-alone objects, full and thin LTO."""
        spend = predicted if self.other_score == CYCLES else executed
        return {
            "run": RunBuild(spend),
            "full-lto": LtoRunBuild("full", lto_flags, spend=spend),
            "thin-lto": LtoRunBuild("thin", lto_flags, spend=spend),
        }

    def scored_by(self, column: str) -> "InliningSpeed":
        """Return the problem with its programs scored by J, or by predicted cycles."""
        if column == J:
            return replace(self, other_score="", report=_EXECUTED)
        if column == CYCLES:
            return replace(self, other_score=CYCLES, report=_PREDICTED)
        raise ProblemError(f"{self.name} has no score '{column}': take {J} or {CYCLES}.")

    def scorers(
        self,
        pool: Pool,
        programs: Sequence[Program],
        rollouts: Mapping[str, Rollout],
        progress: Progress = silent,
    ) -> Scorers:
        """Refuse: a unit alone has no run that could be scored."""
        raise ProblemError(_NO_UNIT_SCORE)

    def profiles(self) -> CallProfiles:
        """Return what inlining calls would save of a run."""
        return CallProfiles()

    def restrained(self, policy: Policy) -> Policy:
        """Return ``policy`` so that it keeps to stock where one call's saving misleads.

        :raises ProblemError: if it is not of trees.
        """
        if not isinstance(policy, TreesPolicy):
            raise ProblemError(f"{self.name} restrains trees alone: take --distil.model trees.")
        return restrained(policy)

    def moves(self, summary: str | None = None) -> SpeedMoves:
        """Return the moves of single sites, hot ones first."""
        return SpeedMoves()

    def summaries(
        self,
        pool: Pool,
        programs: Sequence[Program],
        modes: Sequence[str],
        progress: Progress = silent,
    ) -> Mapping[tuple[str, str], str]:
        """Return nothing: a search goes by the calls of a run, not by what else could go away."""
        return Problem.summaries(self, pool, programs, modes, progress)

    def estimating(self, pool: Pool, model: Path) -> tuple[Pool, float]:
        """Refuse: there is no model of this score."""
        return Problem.estimating(self, pool, model)

    def environment(self, **settings: Any) -> Any:
        """Refuse: a compile alone has no run."""
        return Problem.environment(self, **settings)


_NO_UNIT_SCORE: Final = (
    f"{NAME} judges whole programs by their runs, so a module alone has no score: train with"
    " --learner profile, distil or cma, and compare builds with 'nestor workload measure'."
)

_EXECUTED: Final = Report(
    score=J,
    columns=(*RUN_COLUMNS, "text"),
    unit="operations",
    quantity="instructions, reads and writes of the run",
    mode="input",
    detail=("text",),
    limits=(("text", 1.02),),
    unit_part=1e-5,
)
_PREDICTED: Final = replace(
    _EXECUTED,
    score=CYCLES,
    columns=(CYCLES, *_EXECUTED.columns),
    unit="cycles",
    quantity="predicted cycles of the run",
    detail=(J, "text"),
)

PROBLEM = InliningSpeed(
    name=NAME,
    summary="which call sites to inline, for what programs execute",
    rule=THRESHOLD,
    levels=LEVELS,
    score="instructions, reads and writes that the program's run executes",
    default_column=DEFAULT,
    features=FEATURES,
    report=_EXECUTED,
    builtins=BUILTINS,
    kept_columns=site_credit.COLUMNS,
    scores_units=False,
    remark_passes=(STOCK_REMARKS,),
)
