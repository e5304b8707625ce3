"""Inlining for size: which call sites of a module to inline at -Oz, judged by linked bytes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from nestor.build.build import Build
from nestor.compiler.objects import Measure, measure
from nestor.compiler.plugin import Plugin
from nestor.corpus.model import Program
from nestor.files import read_regular
from nestor.policy.names import NamedPolicy
from nestor.policy.rule import THRESHOLD
from nestor.problem.identity import Way
from nestor.problem.problem import Pool, Problem
from nestor.problem.rollout import Request, Rollout, Workplace
from nestor.problem.score import Credit, Remark, Report, Scorers
from nestor.problem.trajectory import Trajectory
from nestor.problems.inlining_size.builtins import BUILTINS, NAME
from nestor.problems.inlining_size.compile import compile_module
from nestor.problems.inlining_size.features.sets import FEATURES
from nestor.problems.inlining_size.in_builds import LEVELS
from nestor.problems.inlining_size.log import DEFAULT, LARGEST_LOG, parse
from nestor.problems.inlining_size.places import STOCK_REMARKS
from nestor.problems.inlining_size.plugin_flags import lto_flags
from nestor.problems.inlining_size.report import describe
from nestor.problems.inlining_size.score import credit as site_credit
from nestor.problems.inlining_size.score import scorers
from nestor.problems.inlining_size.score.weights import Weights
from nestor.problems.inlining_size.search.moves import SiteMoves
from nestor.problems.inlining_size.search.question_keys import SiteOverrides
from nestor.problems.inlining_size.summary import program_summary, summaries
from nestor.problems.inlining_size.ways import ways
from nestor.progress import Progress, silent


@dataclass(frozen=True)
class InliningSize(Problem):
    """See :class:`nestor.problem.problem.Problem`; a group of questions is a callee's sites."""

    search: SiteMoves = field(default_factory=SiteMoves)
    """Where a search of a program begins, without what a summary says of it."""
    outcome_in_object: bool = True

    def compile(self, request: Request, place: Workplace) -> Rollout:
        """Compile one module with the plugin; the outcome is a ``Measure`` of the object."""
        return compile_module(request, place)

    def outcome_of(self, compiled: Path) -> Measure:
        """Measure the object."""
        return measure(compiled)

    def columns(self, outcome: Measure) -> Mapping[str, float]:
        """Return an object's loadable bytes and code; only a link has linked bytes."""
        return {"object": outcome.loadable, "linked": outcome.loadable, "text": outcome.text}

    def scorers(
        self,
        pool: Pool,
        programs: Sequence[Program],
        rollouts: Mapping[str, Rollout],
        progress: Progress = silent,
    ) -> Scorers:
        """Weigh the functions of each module by what the stock links kept of them."""
        return scorers.scorers(pool, programs, rollouts, progress)

    def scorer(self, data: Mapping[str, Any]) -> Weights:
        """Return the weights of which ``data`` is the plain form."""
        return Weights(**data)

    def credit(
        self,
        before: tuple[Trajectory, Mapping[str, float]],
        after: tuple[Trajectory, Mapping[str, float]],
    ) -> Credit:
        """Put changed bytes down to the sites that can reach them."""
        return site_credit.credit(before, after)

    def builds(self) -> Mapping[str, Build]:
        """Return the link of stand-alone objects, full and thin LTO, and the copies build."""
        from nestor.build.copies import CopiesBuild
        from nestor.build.link import LinkBuild
        from nestor.build.lto import LtoBuild

        return {
            "link": LinkBuild(),
            "full-lto": LtoBuild("full", lto_flags),
            "thin-lto": LtoBuild("thin", lto_flags),
            "copies": CopiesBuild(),
        }

    def overrides(self) -> SiteOverrides:
        """Return overrides by call site, callee and module."""
        return SiteOverrides()

    def moves(self, summary: str | None = None) -> SiteMoves:
        """Return the moves of single sites, of callees and of components of the call graph."""
        uses = None if summary is None else program_summary.parse(summary).functions
        return replace(self.search, uses=uses)

    def summaries(
        self,
        pool: Pool,
        programs: Sequence[Program],
        modes: Sequence[str],
        progress: Progress = silent,
    ) -> Mapping[tuple[str, str], str]:
        """Summarise the objects of the programs' stock builds."""
        return summaries.summaries(pool, programs, modes, progress)

    def ways(self, plugin: Plugin, policy: NamedPolicy, folder: Path) -> Sequence[Way]:
        """Return the plugin's ways and the channel's."""
        return ways(plugin, policy, folder, self.levels)

    def estimating(self, pool: Pool, model: Path) -> tuple[Pool, float]:
        """Return a pool that predicts functions' sizes before code generation."""
        from nestor.problems.inlining_size.size.estimating_pool import (
            PART_WITHOUT_CODE,
            EstimatingPool,
        )
        from nestor.problems.inlining_size.size.model import load

        return EstimatingPool(pool, load(model)), PART_WITHOUT_CODE

    def read_log(self, path: Path) -> Trajectory:
        """Read a log that the plugin wrote."""
        return parse(read_regular(path, "a log", limit=LARGEST_LOG), str(path))

    def word(self, answer: Any) -> str:
        """Return an answer in the words of a file of overrides."""
        return "inline" if answer else "keep"

    def environment(self, **settings: Any) -> Any:
        """Return a Gymnasium environment whose action is 1 to inline the call and 0 to keep it."""
        from nestor.environment import CompileEnvironment
        from nestor.problems.inlining_size.live import LIVE

        return CompileEnvironment(replace(LIVE, level=self.levels[0]), **settings)

    def describe(self, trajectory: Trajectory, row: int) -> dict[str, Any]:
        """Return one call site with its functions' names, answers and effect."""
        return describe(trajectory, row)


PROBLEM = InliningSize(
    name=NAME,
    summary="which call sites to inline, for the size of linked programs",
    rule=THRESHOLD,
    levels=LEVELS,
    score="loadable bytes of the linked program",
    default_column=DEFAULT,
    features=FEATURES,
    report=Report(
        score="linked",
        columns=("linked", "object", "text"),
        quantity="loadable bytes",
        detail=("text",),
        least=80_000,
        remarks=(Remark("growth_cap_reached", "growth_capped", "hit the growth cap"),),
    ),
    builtins=BUILTINS,
    imitated=("threshold:0", "threshold:15", "threshold:25"),
    kept_columns=site_credit.COLUMNS,
    remark_passes=(STOCK_REMARKS,),
    credit_unit=16.0,  # bytes: about one call
    credit_clip=60.0,
)
