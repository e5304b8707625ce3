"""Compare policies by the scores of whole programs, compiling only what they change."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from nestor.build.build import Build, Built, Job, builds_of
from nestor.corpus.model import CorpusError, Program
from nestor.learn.accounting import Tally
from nestor.learn.answers import changed_answers, reproduces_default
from nestor.policy.names import DEFAULT, NamedPolicy
from nestor.policy.spec import Policy
from nestor.problem.problem import Pool
from nestor.problem.rollout import Request, Rollout
from nestor.progress import Progress, silent
from nestor.rollout.layered import LayeredPool

F64 = npt.NDArray[np.float64]


class ReusingPool(LayeredPool):
    """A pool that does not compile a unit which a policy would leave as the default does."""

    def __init__(self, below: Pool, defaults: Mapping[str, Rollout], tally: Tally):
        """Work like ``below``.

        :param defaults: the default heuristic's rollouts by unit, with logs and kept objects.
        :param tally: counts what is compiled and what is not.
        """
        super().__init__(below)
        self.defaults = defaults
        self.tally = tally
        self._compiled: list[str] = []
        """The kept objects of this pool's own compiles, by SHA-256."""

    def run(
        self, requests: Sequence[Request], progress: Progress = silent, stage: str = "Compiling"
    ) -> list[Rollout]:
        """Compile what a policy changes, and return the default's rollouts for the rest."""
        reused = [self._reused(request) for request in requests]
        rest = [r for r, rollout in zip(requests, reused, strict=True) if rollout is None]
        compiled = super().run(rest, progress, stage)
        self.tally.add(compiled)
        self.tally.count(0, reused=len(requests) - len(rest))
        self._compiled.extend(done.object for done in compiled if done.object is not None)
        new = iter(compiled)
        return [next(new) if rollout is None else rollout for rollout in reused]

    def release(self) -> None:
        """Give up the objects of all compiles so far, but not those of the default."""
        while self._compiled:
            self.objects.release(self._compiled.pop())

    def _reused(self, request: Request) -> Rollout | None:
        default = self.defaults.get(request.unit.name)
        sampled = request.seed is not None or request.overrides is not None
        if default is None or request.policy is None or sampled:
            return None
        policy = request.policy.policy
        return default if policy is None or _reproduces(policy, default) else None


def _reproduces(policy: Policy, default: Rollout) -> bool:
    log = default.trajectory
    return log is not None and reproduces_default(policy, log)


@dataclass(frozen=True)
class Comparison:
    """Compares policies with stock by the scores of programs."""

    pool: ReusingPool
    build: Build
    programs: tuple[Program, ...]
    stock: F64
    """Each program's score under the stock heuristic, ``[programs]``."""

    def __call__(self, policies: Sequence[Policy]) -> F64:
        """Return the relative change of each program's score, ``[policies, programs]``.

        NaN where a compile or a link failed; 0, without a link, where no unit changes.
        """
        defaults, tally = self.pool.defaults, self.pool.tally
        result = np.zeros((len(policies), len(self.programs)))
        jobs, places = [], []
        for row, policy in enumerate(policies):
            named = NamedPolicy.of(policy)
            same = {name for name, done in defaults.items() if _reproduces(policy, done)}
            for column, program in enumerate(self.programs):
                if same.issuperset(program.modules):
                    tally.count(0, reused=len(program.modules))
                else:
                    jobs.append(Job(program, self.build.modes[0], named))
                    places.append((row, column))
        tally.charge([job.program.name for job in jobs])
        for (row, column), built in zip(places, self.build.run(self.pool, jobs), strict=True):
            before = self.stock[column]
            result[row, column] = (_score(self.pool, built) - before) / before
        self.pool.release()
        return result

    def deviation(self, policy: Policy) -> float:
        """Return the part of the default's questions that ``policy`` answers differently."""
        defaults = self.pool.defaults.values()
        logs = [done.trajectory for done in defaults if done.trajectory is not None]
        return sum(changed_answers(policy, log) for log in logs) / sum(map(len, logs))


def comparison(
    pool: Pool,
    programs: Sequence[Program],
    defaults: Mapping[str, Rollout],
    tally: Tally,
    progress: Progress = silent,
) -> Comparison:
    """Build the programs under the default heuristic; those that fail are left out.

    :param defaults: the default heuristic's rollouts by unit, with logs and kept objects.
    :raises CorpusError: if none is left.
    """
    build = next(iter(builds_of(pool.problem).values()))
    reusing = ReusingPool(pool, defaults, Tally())
    jobs = [Job(program, build.modes[0], DEFAULT) for program in programs]
    scores = [_score(reusing, built) for built in build.run(reusing, jobs, progress)]
    usable = [(p, score) for p, score in zip(programs, scores, strict=True) if np.isfinite(score)]
    if not usable:
        raise CorpusError("None of the training programs can be built; try 'nestor evaluate'.")
    own = {name for program, _ in usable for name in program.modules}
    kept = {name: done for name, done in defaults.items() if name in own}
    return Comparison(
        ReusingPool(pool, kept, tally),
        build,
        tuple(program for program, _ in usable),
        np.array([score for _, score in usable], dtype=np.float64),
    )


def _score(pool: Pool, built: Built) -> float:
    """Return the score of a program; NaN if it could not be built."""
    columns = built.columns
    return float("nan") if columns is None else float(columns[pool.problem.report.score])
