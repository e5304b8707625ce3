"""Times of programs under policies, each program's builds interleaved."""

from collections.abc import Sequence

from nestor.build.build import Job, find_build
from nestor.corpus.model import Program
from nestor.errors import NestorError
from nestor.evaluate.result import Failure
from nestor.policy.names import NamedPolicy
from nestor.problem.problem import Pool
from nestor.progress import Progress, silent
from nestor.workload.timing import STOCK, Clock, Timing, time_ab


def time_programs(
    pool: Pool,
    programs: Sequence[Program],
    policies: Sequence[NamedPolicy],
    *,
    rounds: int,
    core: int,
    clock: Clock,
    overrides: str | None = None,
    build: str | None = None,
    progress: Progress = silent,
) -> tuple[list[Timing], list[Failure]]:
    """Build ``programs`` stock and under each policy, and time one program after the other.

    A policy whose build of a program failed is left out there, and named in the failures.

    :param core: the processor that all runs are pinned to.
    :param overrides: the text of a file of answers that stand above every policy's.
    :param build: how programs are built, such as ``full-lto``; None links their modules' objects.
    """
    sides: list[NamedPolicy | None] = [None, *policies]
    jobs = [
        Job(program, "gc", policy, overrides=None if policy is None else overrides)
        for program in programs
        for policy in sides
    ]
    binaries = find_build(pool.problem, build).binaries(pool, jobs, progress)
    timings: list[Timing] = []
    failures: list[Failure] = []
    for number, program in enumerate(programs):
        own = binaries[number * len(sides) : (number + 1) * len(sides)]
        builds = {
            binary.job.policy.name if binary.job.policy is not None else STOCK: pool.objects.path(
                binary.digest
            )
            for binary in own
            if binary.digest is not None
        }
        for binary in own:
            if binary.digest is None:
                side = binary.job.policy.name if binary.job.policy is not None else STOCK
                failures.append(Failure(program.name, side, binary.failure or "not built"))
        if STOCK not in builds:
            continue
        words = program.workload.measure if program.workload is not None else ()
        try:
            timings.append(
                time_ab(
                    pool.corpus,
                    program,
                    builds,
                    words,
                    rounds=rounds,
                    core=core,
                    clock=clock,
                    progress=progress,
                )
            )
        except NestorError as error:
            failures.append(Failure(program.name, "run", str(error)))
    return timings, failures
