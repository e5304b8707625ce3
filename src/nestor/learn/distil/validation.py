"""Validation: how policies change programs that are neither trained on nor held out."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from nestor.build.build import Build
from nestor.build.incremental import ProgramBuild
from nestor.change import change_pct, change_text
from nestor.corpus.model import Program
from nestor.learn.accounting import Tally
from nestor.learn.distil.searches import search_modes
from nestor.policy.names import DEFAULT, NamedPolicy
from nestor.policy.spec import Policy
from nestor.problem.problem import Pool
from nestor.problem.score import Report
from nestor.progress import Progress, silent

WITH_SUMMARY = "with a summary"
"""The column of builds in the first mode for which the compiler has the program's summary."""

Changes = Mapping[str, Mapping[str, float]]
"""Relative change against stock by program, and by mode or ``WITH_SUMMARY``."""


@dataclass(frozen=True)
class Validated:
    """How the validation programs change under a policy."""

    scores: Changes
    details: Changes
    """Of the columns beside the score (the report's ``detail``) the one that grew most."""


def validation(
    pool: Pool,
    build: Build,
    programs: Sequence[Program],
    tally: Tally,
    progress: Progress = silent,
) -> Callable[[Policy], Validated]:
    """Return the function that builds ``programs`` under a policy, with and without summaries.

    Stock builds and summaries are computed once, when they are first needed.

    :raises BuildError: (the function) if a program cannot be built.
    """
    modes, problem = search_modes(build), pool.problem
    stock: dict[str, ProgramBuild] = {}
    summaries: dict[str, str] = {}

    def built(program: Program, policy: NamedPolicy, summary: str | None = None) -> ProgramBuild:
        own = modes if summary is None else modes[:1]
        builder = build.incremental(pool, program, policy, own, summary)
        try:
            return builder.build({})
        finally:
            tally.count(builder.rollouts)
            builder.close()

    def changed(before: ProgramBuild, after: ProgramBuild, mode: str) -> tuple[float, float]:
        return relative_changes(problem.report, before.columns[mode], after.columns[mode])

    def changes(policy: Policy) -> Validated:
        named, reads_summary = NamedPolicy.of(policy), problem.reads_summary(policy)
        if reads_summary and not build.whole and not summaries:
            texts = problem.summaries(pool, programs, modes[:1])
            summaries.update({program: text for (program, _), text in texts.items()})
        scores, grown = {}, {}
        for done, program in enumerate(programs):
            progress("Validating", done, len(programs))
            if program.name not in stock:
                stock[program.name] = built(program, DEFAULT)
            before, after = stock[program.name], built(program, named)
            row = {mode: changed(before, after, mode) for mode in modes}
            if reads_summary and program.name in summaries:
                summarised = built(program, named, summaries[program.name])
                row[WITH_SUMMARY] = changed(before, summarised, modes[0])
            scores[program.name] = {mode: score for mode, (score, _) in row.items()}
            grown[program.name] = {mode: detail for mode, (_, detail) in row.items()}
        found = Validated(scores, grown)
        overall = verdict(found)
        mean, worst = (change_text(100 * change) for change in (overall.mean, overall.worst))
        summed = f"mean {mean}, worst {worst}"
        progress(f"Validating: {summed}", len(programs), len(programs))
        return found

    return changes


def relative_changes(
    report: Report, stock: Mapping[str, float], changed: Mapping[str, float]
) -> tuple[float, float]:
    """Return the change of a program's score, and of the detail the change that is largest.

    :param stock: the program by the columns of the report; so is ``changed``.
    """
    score, *detail = (
        change_pct(stock[name], changed[name]) / 100 for name in (report.score, *report.detail)
    )
    # Where stock has nothing, there is no growth to judge by.
    return score, max(filter(math.isfinite, detail), default=0.0)


@dataclass(frozen=True)
class Verdict:
    """Relative changes, summed up over programs and columns; 0 without programs."""

    mean: float
    """Of the score."""
    worst: float
    """Of the score; the largest."""
    detail: float = 0.0
    """The largest of the columns beside the score."""


def verdict(found: Validated) -> Verdict:
    """Return the mean and the largest of the changes."""
    scores, details = (
        [change for columns in changes.values() for change in columns.values()] or [0.0]
        for changes in (found.scores, found.details)
    )
    return Verdict(sum(scores) / len(scores), max(scores), max(details))
