"""Compare policies inside LTO with stock LTO, program by program.

Every program is linked stock and, under each policy, twice: as in use, and once more with a log,
which counts the decisions and must give the same program again. Failures are results: counted,
named and never dropped.
"""

import hashlib
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import chain, product
from pathlib import Path
from typing import NamedTuple

from nestor.compiler.lto import LtoKind
from nestor.compiler.objects import Measure
from nestor.corpus.model import Program
from nestor.corpus.relink import LinkMode
from nestor.evaluate.compare import EvaluateSettings
from nestor.evaluate.groups import style_group
from nestor.evaluate.result import (
    Evaluation,
    Failure,
    ProgramResult,
    Sizes,
    SmokeTests,
    worst_first,
)
from nestor.evaluate.smoke import compare_runs
from nestor.progress import Progress, silent
from nestor.rollout.lto import LtoLink, LtoRequest, lto_link, prelink
from nestor.rollout.policy_file import PolicyFile
from nestor.rollout.pool import Pool


class _Row(NamedTuple):
    """One program for one policy and mode: its links, or what became of them."""

    stock: LtoLink
    policy: LtoLink
    logged: LtoLink


def evaluate_lto(
    pool: Pool,
    programs: Sequence[Program],
    policies: Sequence[PolicyFile],
    kind: LtoKind,
    settings: EvaluateSettings | None = None,
    progress: Progress = silent,
) -> tuple[Evaluation, ...]:
    """Link ``programs`` by LTO, stock and under each policy inside the linker, and compare them.

    Return an evaluation for each policy and, within it, for each link mode. In it, sizes of
    objects are those of the program, and CPU times those of the links.
    """
    settings = settings or EvaluateSettings()
    objects = prelink(pool, programs, kind, progress)
    with tempfile.TemporaryDirectory(prefix="nestor-evaluate-") as text:
        folder = Path(text)

        def requests(policy: PolicyFile, mode: LinkMode, program: Program) -> list[LtoRequest]:
            stock = LtoRequest(program, kind, mode)
            used = replace(stock, policy=policy.argument, overrides=settings.overrides)
            return [stock, used, replace(used, log=True)]

        cases = list(product(policies, settings.modes, programs))
        # Side by side by program: what else the machine does then costs all sides the same.
        wanted = list(dict.fromkeys(chain.from_iterable(requests(*case) for case in cases)))
        kept = [replace(r, keep=folder / str(number)) for number, r in enumerate(wanted)]
        stage = f"Linking stock and {', '.join(p.name for p in policies)} by {kind} LTO"
        links = pool.map(lambda r: lto_link(pool, r, objects), kept, progress, stage)
        done = dict(zip(wanted, links, strict=True))
        return tuple(
            _evaluation(
                pool,
                policy,
                mode,
                [_Row(*(done[r] for r in requests(policy, mode, p))) for p in programs],
                settings,
                progress,
            )
            for policy, mode in product(policies, settings.modes)
        )


def _evaluation(
    pool: Pool,
    policy: PolicyFile,
    mode: LinkMode,
    rows: Sequence[_Row],
    settings: EvaluateSettings,
    progress: Progress,
) -> Evaluation:
    smoke, broken = _smoke(pool, rows, progress) if settings.smoke else (None, [])
    logs = [
        (row.logged.request.program.name, log)
        for row in rows
        for log in row.logged.trajectories.values()
    ]
    both = [row for row in rows if row.stock.measure and row.policy.measure]
    before = sum(row.stock.cpu_seconds for row in both)
    overrides = settings.overrides.read_bytes() if settings.overrides else None
    return Evaluation(
        policy=policy.name,
        mode=mode,
        summary=False,
        programs=tuple(sorted((_result(pool, row) for row in rows), key=worst_first)),
        failures=(*dict.fromkeys(chain.from_iterable(map(_failures, rows))), *broken),
        compile_cpu_ratio=sum(r.policy.cpu_seconds for r in both) / before if before else None,
        decisions=sum(len(log) for _, log in logs),
        growth_capped=tuple(dict.fromkeys(name for name, log in logs if log.growth_cap_reached)),
        smoke=smoke,
        hashes={
            "corpus": pool.corpus.digest,
            "compiler": pool.plugin.toolchain.build_id,
            "plugin": pool.plugin.digest,
            "policy": policy.digest,
            "overrides": None if overrides is None else hashlib.sha256(overrides).hexdigest(),
            "lto": rows[0].stock.request.kind,
        },
    )


def _result(pool: Pool, row: _Row) -> ProgramResult:
    program = row.stock.request.program
    return ProgramResult(
        program.name,
        program.project,
        program.language,
        pool.corpus.project(program.project).style,
        style_group(pool.corpus, program),
        _sizes(row.stock.measure),
        _sizes(row.policy.measure),
    )


def _sizes(measure: Measure | None) -> Sizes | None:
    if measure is None:
        return None
    return Sizes(measure.loadable, measure.loadable, measure.text, {})


def _failures(row: _Row) -> Iterator[Failure]:
    name = row.stock.request.program.name
    for side, done in zip(_Row._fields, row, strict=True):
        if done.failure is not None:
            yield Failure(name, side, done.failure)
    if row.policy.measure and row.logged.measure and _bytes(row.policy) != _bytes(row.logged):
        yield Failure(name, "logged", "another program than without the log; please report this")


def _bytes(link: LtoLink) -> bytes:
    return link.request.keep.read_bytes() if link.request.keep else b""


def _smoke(
    pool: Pool, rows: Sequence[_Row], progress: Progress
) -> tuple[SmokeTests, list[Failure]]:
    ready = [
        (row.stock.request.program, row.stock.request.keep, row.policy.request.keep)
        for row in rows
        if row.stock.request.program.smoke and row.stock.measure and row.policy.measure
    ]

    def one(item: tuple[Program, Path | None, Path | None]) -> Failure | None:
        program, stock, policy = item
        assert stock is not None and policy is not None
        return compare_runs(pool.corpus, program, stock, policy, pool.limits)

    done = pool.map(one, ready, progress, "Running smoke tests")
    failed = [failure for failure in done if failure is not None]
    return SmokeTests(len(done) - len(failed), len(failed), len(rows) - len(done)), failed
