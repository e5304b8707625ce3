"""Binaries of programs under any problem: units compiled by themselves, and linked."""

from collections.abc import Sequence
from pathlib import Path
from typing import cast

from nestor.build.assembly import sum_columns
from nestor.build.build import Binary, Job
from nestor.build.linking import TEXT, link
from nestor.build.units import Compiled, compile_units
from nestor.corpus.relink import LinkMode
from nestor.problem.problem import Pool
from nestor.progress import Progress, silent
from nestor.temporary import temporary_folder


def link_binaries(pool: Pool, jobs: Sequence[Job], progress: Progress = silent) -> list[Binary]:
    """Compile and link every job, whatever the problem; results in the order of the jobs.

    A problem whose programs are judged without a link (:mod:`nestor.build.objects`) has binaries
    too: they are linked as :class:`nestor.build.link.LinkBuild` does.
    """
    compiled = compile_units(pool, jobs, progress)

    def one(item: tuple[Job, Compiled]) -> Binary:
        return _linked(pool, *item)

    return pool.map(one, list(zip(jobs, compiled, strict=True)), progress, "Linking")


def _linked(pool: Pool, job: Job, units: Compiled) -> Binary:
    failed = next((f"{n}: {r.failure}" for n, r in units.rollouts.items() if r.failure), None)
    if failed is not None:
        return Binary(job, None, failed)
    objects = {name: pool.objects.path(digest) for name, digest in units.objects.items()}
    with temporary_folder("binary") as folder:
        out = Path(folder) / "program"
        mode = cast(LinkMode, job.mode)
        linked = link(
            pool.plugin.toolchain, pool.corpus, job.program, objects, mode=mode, out=out,
            limits=pool.limits,
        )  # fmt: skip
        if linked.measure is None:
            return Binary(job, None, linked.failure)
        digest = pool.objects.put(out)
    outcomes = [done.outcome for done in units.rollouts.values()]
    columns = sum_columns([pool.problem.columns(outcome) for outcome in outcomes])
    columns = {**columns, TEXT: linked.measure.text}
    return Binary(job, digest, None, linked.measure, columns)
