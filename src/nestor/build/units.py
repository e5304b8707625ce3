"""Compile the units of programs, each of them by itself."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from nestor.build.build import Compile, Job
from nestor.problem.problem import Pool
from nestor.problem.rollout import Request, Rollout
from nestor.progress import Progress, silent


@dataclass(frozen=True)
class Compiled:
    """The units of one job, by name."""

    rollouts: Mapping[str, Rollout]
    compiles: Mapping[str, Compile]

    @property
    def objects(self) -> dict[str, str]:
        """SHA-256 of the object of every unit that was compiled."""
        return {name: done.object for name, done in self.rollouts.items() if done.object}


def compile_units(pool: Pool, jobs: Sequence[Job], progress: Progress = silent) -> list[Compiled]:
    """Compile every unit of every job, equal requests once.

    All compiles of one unit stand side by side: whatever else the machine does then costs all
    sides of a comparison the same.
    """
    if not jobs:
        return []
    users: dict[str, list[Job]] = {}
    for job in jobs:
        for name in job.program.modules:
            users.setdefault(name, []).append(job)
    requests = list(
        dict.fromkeys(unit_request(pool, job, name) for name, own in users.items() for job in own)
    )
    done = dict(zip(requests, pool.run(requests, progress, _stage(jobs)), strict=True))
    compiles = {request: _compile(rollout) for request, rollout in done.items()}
    result = []
    for job in jobs:
        own = {name: unit_request(pool, job, name) for name in job.program.modules}
        result.append(
            Compiled(
                {name: done[request] for name, request in own.items()},
                {name: compiles[request] for name, request in own.items()},
            )
        )
    return result


def unit_request(pool: Pool, job: Job, name: str) -> Request:
    """Return the request for one unit of ``job``, whose object is kept."""
    return Request(
        pool.corpus.module(name),
        job.policy,
        also=job.also,
        overrides=job.overrides,
        summary=job.summary,
        log=job.log,
        names=job.log and job.names,
        keep=True,
    )


def _compile(done: Rollout) -> Compile:
    name = done.request.unit.name
    logs = {} if done.trajectory is None else {name: done.trajectory}
    return Compile(name, done.object, logs, done.cpu_seconds, done.failure)


def _stage(jobs: Sequence[Job]) -> str:
    names = dict.fromkeys(job.policy.name if job.policy else "stock" for job in jobs)
    return f"Compiling {', '.join(sorted(names, key=lambda name: name != 'stock'))}"
