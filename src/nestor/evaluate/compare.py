"""Compare policies with the stock compiler, program by program.

Every program is built stock and, under each policy, twice: as in use, side by side with stock
so that their CPU times compare, and (unless the settings leave it out) once more with a log, which
counts the decisions and must give the same objects again. Failures are results: counted, named
and never dropped.
"""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, product
from typing import Literal, NamedTuple

from nestor.build.build import Build, Built, Compile, Job
from nestor.corpus.model import Corpus, CorpusError, Program, Split
from nestor.evaluate.groups import style_group
from nestor.evaluate.provenance import digests
from nestor.evaluate.result import (
    Evaluation,
    Failure,
    Outcome,
    ProgramResult,
    SmokeTests,
    worst_first,
)
from nestor.evaluate.smoke import compare_runs
from nestor.policy.names import NamedPolicy
from nestor.problem.problem import Pool
from nestor.problem.score import Report
from nestor.progress import Progress, silent


@dataclass(frozen=True)
class EvaluateSettings:
    """What is evaluated besides the policies."""

    modes: tuple[str, ...] = ()
    """Modes of the build; none is its usual one."""
    overrides: str | None = None
    """The text of a file of answers that stand above every policy's."""
    summary: bool = False
    """Give summaries of the programs to policies that read them; a unit of several programs is
    then compiled for each."""
    smoke: bool = False
    """Run the programs briefly: foreign code."""
    log: bool = True
    """Build once more with a log, which counts the decisions and must give the same objects."""


def select_programs(corpus: Corpus, split: Split | Literal["all"] | None) -> tuple[Program, ...]:
    """Return the programs to judge by: those of ``split``, or the held-out ones.

    :param split: None takes the test split, or everything in a corpus that has none.
    :raises CorpusError: if there are none.
    """
    if split is None:
        programs = corpus.programs_of("test") or corpus.programs
    else:
        programs = corpus.programs if split == "all" else corpus.programs_of(split)
    if not programs:
        raise CorpusError(
            f"The corpus {corpus.root} has no programs to link"
            f"{f' in the split {split}' if split else ''}, so there is nothing to compare: capture "
            "a build that links C or C++, or take another --split."
        )
    return programs


def evaluate(
    pool: Pool,
    build: Build,
    programs: Sequence[Program],
    policies: Sequence[NamedPolicy],
    settings: EvaluateSettings | None = None,
    progress: Progress = silent,
) -> tuple[Evaluation, ...]:
    """Build ``programs`` stock and under each policy and compare them.

    Return an evaluation for each policy and, within it, for each mode.
    """
    settings = settings or EvaluateSettings()
    settings = replace(settings, modes=settings.modes or build.modes[:1])
    summaries: Mapping[tuple[str, str], str] = {}
    if settings.summary and any(pool.problem.reads_summary(p.policy) for p in policies):
        summaries = pool.problem.summaries(pool, programs, settings.modes, progress)
    cases = list(product(policies, settings.modes, programs))
    sides = [_jobs(pool, *case, settings, summaries) for case in cases]
    wanted = list(dict.fromkeys(chain.from_iterable(sides)))
    built = dict(zip(wanted, build.run(pool, wanted, progress), strict=True))
    rows = dict(
        zip(
            ((policy.name, mode, program.name) for policy, mode, program in cases),
            (_Row(*(built[job] for job in jobs)) for jobs in sides),
            strict=True,
        )
    )
    return tuple(
        _evaluation(
            pool, build, policy, mode, [rows[policy.name, mode, p.name] for p in programs],
            settings, progress,
        )
        for policy, mode in product(policies, settings.modes)
    )  # fmt: skip


class _Row(NamedTuple):
    """One program for one policy and mode: its builds, or what became of them."""

    stock: Built
    policy: Built
    logged: Built


class _Sides(NamedTuple):
    """One unit of a program for one policy: its compiles, or what became of them."""

    stock: Compile
    policy: Compile
    logged: Compile


def _jobs(
    pool: Pool,
    policy: NamedPolicy,
    mode: str,
    program: Program,
    settings: EvaluateSettings,
    summaries: Mapping[tuple[str, str], str],
) -> tuple[Job, Job, Job]:
    stock = Job(program, mode, keep=settings.smoke)
    reads = pool.problem.reads_summary(policy.policy)
    used = replace(
        stock,
        policy=policy,
        overrides=settings.overrides,
        summary=summaries.get((program.name, mode)) if reads else None,
    )
    return stock, used, replace(used, log=True, keep=False) if settings.log else used


def _evaluation(
    pool: Pool,
    build: Build,
    policy: NamedPolicy,
    mode: str,
    rows: Sequence[_Row],
    settings: EvaluateSettings,
    progress: Progress,
) -> Evaluation:
    """Put together what concerns one policy and mode."""
    smoke, broken = _smoke(pool, rows, progress) if settings.smoke else (None, [])
    # Programs that share a compile share its object: it counts once.
    units = list(dict.fromkeys(chain.from_iterable(_units(row) for row in rows)))
    report = pool.problem.report
    logs = [(u.logged.unit, log) for u in units for log in u.logged.trajectories.values()]
    return Evaluation(
        policy=policy.name,
        mode=mode,
        summary=settings.summary and pool.problem.reads_summary(policy.policy),
        programs=tuple(sorted((_result(pool, row) for row in rows), key=worst_first)),
        failures=(
            *_compile_failures(build, units),
            *chain.from_iterable(map(_program_failures, rows)),
            *broken,
        ),
        compile_cpu_ratio=_cpu_ratio(units),
        decisions=sum(len(log) for _, log in logs),
        remarks={
            remark.key: tuple(
                dict.fromkeys(name for name, log in logs if log.facts.get(remark.fact))
            )
            for remark in report.remarks
        },
        smoke=smoke,
        hashes={**digests(pool, policy), "overrides": _digest(settings.overrides)},
        problem=pool.problem.name,
        build=build.name,
        report=report,
    )


def _units(row: _Row) -> Iterator[_Sides]:
    for sides in zip(row.stock.compiles, row.policy.compiles, row.logged.compiles, strict=True):
        yield _Sides(*sides)


def _result(pool: Pool, row: _Row) -> ProgramResult:
    program, report = row.stock.job.program, pool.problem.report
    return ProgramResult(
        program.name,
        program.project,
        program.language,
        pool.corpus.project(program.project).style,
        style_group(pool.corpus, program),
        _outcome(row.stock, report),
        _outcome(row.policy, report),
        report,
    )


def _outcome(built: Built, report: Report) -> Outcome | None:
    if built.columns is None:
        return None
    columns = {name: built.columns[name] for name in report.columns if name in built.columns}
    return Outcome(columns, built.scores())


def _compile_failures(build: Build, units: Sequence[_Sides]) -> Iterator[Failure]:
    yield from dict.fromkeys(
        Failure(done.unit, side, done.failure)
        for sides in units
        for side, done in zip(_Sides._fields, sides, strict=True)
        if done.failure is not None
    )
    for _, used, logged in units:
        if used.digest and logged.digest and used.digest != logged.digest:
            reason = f"another {build.product} than without the log; please report this"
            yield Failure(used.unit, "logged", reason)


def _program_failures(row: _Row) -> Iterator[Failure]:
    for side, built in zip(("stock", "policy"), row, strict=False):
        of_units = {done.failure for done in built.compiles if done.unit == built.job.program.name}
        if built.failure is not None and built.failure not in of_units:
            yield Failure(built.job.program.name, side, built.failure)


def _cpu_ratio(units: Sequence[_Sides]) -> float | None:
    # Only what was compiled now, side by side, compares: not a stock object that had been kept.
    timed = [u for u in units if u.stock.cpu_seconds > 0]
    both = [u for u in timed if u.stock.failure is None and u.policy.failure is None]
    before = sum(sides.stock.cpu_seconds for sides in both)
    return sum(sides.policy.cpu_seconds for sides in both) / before if before > 0 else None


def _smoke(
    pool: Pool, rows: Sequence[_Row], progress: Progress
) -> tuple[SmokeTests, list[Failure]]:
    ready = [
        (row.stock.job.program, row.stock.binary, row.policy.binary)
        for row in rows
        if row.stock.job.program.smoke
    ]

    def one(item: tuple[Program, str | None, str | None]) -> Failure | None:
        program, stock, policy = item
        assert stock is not None and policy is not None
        binaries = pool.objects.path(stock), pool.objects.path(policy)
        return compare_runs(pool.corpus, program, *binaries, pool.limits)

    both = [item for item in ready if item[1] and item[2]]
    done = pool.map(one, both, progress, "Running smoke tests")
    failed = [failure for failure in done if failure is not None]
    return SmokeTests(len(done) - len(failed), len(failed), len(rows) - len(done)), failed


def _digest(text: str | None) -> str | None:
    return None if text is None else hashlib.sha256(text.encode()).hexdigest()
