"""Compare policies by the scores of whole programs, compiling only what they change.

What a problem limits besides its score (``Report.limits``) counts too: by what a program exceeds
such a limit, its score counts as so much larger. So a policy cannot buy speed with any amount of
code.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from nestor.build.build import Build, Built, Job, builds_of
from nestor.corpus.model import CorpusError, Program
from nestor.learn.accounting import Tally
from nestor.learn.answers import changed_answers, reproduces_default
from nestor.learn.blackbox.candidates import Judge
from nestor.learn.episodes import draw
from nestor.learn.programs import default_rollouts, training_programs, units_of
from nestor.learn.reference import Questions
from nestor.learn.setup import Setup
from nestor.policy.names import DEFAULT, NamedPolicy
from nestor.policy.spec import Policy
from nestor.problem.problem import Pool
from nestor.problem.rollout import Request, Rollout
from nestor.problem.trajectory import Trajectory
from nestor.progress import Progress, silent
from nestor.rollout.layered import LayeredPool

F64 = npt.NDArray[np.float64]
I64 = npt.NDArray[np.int64]


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
    stock: tuple[Mapping[str, float], ...]
    """The columns of each program under the stock heuristic."""

    def __call__(
        self, policies: Sequence[Policy], places: Sequence[int] | I64 | None = None
    ) -> F64:
        """Return the relative change of each program's score, ``[policies, programs]``.

        NaN where a compile or a link failed; 0, without a link, where no unit changes.

        :param places: of the programs to compare on; None takes all.
        """
        defaults, tally = self.pool.defaults, self.pool.tally
        chosen = range(len(self.programs)) if places is None else [int(each) for each in places]
        result = np.zeros((len(policies), len(chosen)))
        jobs, cells = list[Job](), list[tuple[int, int]]()
        for row, policy in enumerate(policies):
            named = NamedPolicy.of(policy)
            same = {name for name, done in defaults.items() if _reproduces(policy, done)}
            for column, place in enumerate(chosen):
                program = self.programs[place]
                if same.issuperset(program.modules):
                    tally.count(0, reused=len(program.modules))
                else:
                    jobs.append(Job(program, self.build.modes[0], named))
                    cells.append((row, column))
        tally.charge([job.program.name for job in jobs])
        for (row, column), built in zip(cells, self.build.run(self.pool, jobs), strict=True):
            result[row, column] = self._change(built, self.stock[chosen[column]])
        self.pool.release()
        return result

    def deviation(self, policy: Policy) -> float:
        """Return the part of the default's questions that ``policy`` answers differently."""
        logs = self._logs()
        return sum(changed_answers(policy, log) for log in logs) / sum(map(len, logs))

    def questions(self, features: Sequence[str]) -> Questions:
        """Return what the default heuristic was asked in the programs, with these features."""
        return Questions(self.pool.problem, tuple(features), self._logs())

    def report(self, policy: Policy) -> Mapping[str, Any]:
        """Return the change of each program's score under ``policy`` in per cent, for a user."""
        (changes,) = self([policy])
        named = zip(self.programs, changes, strict=True)
        return {"training_programs": {p.name: float(100 * change) for p, change in named}}

    def _logs(self) -> tuple[Trajectory, ...]:
        """Return what the default heuristic was asked, by unit."""
        defaults = self.pool.defaults.values()
        return tuple(done.trajectory for done in defaults if done.trajectory is not None)

    def _change(self, built: Built, stock: Mapping[str, float]) -> float:
        """Return the relative change of a score; what exceeds a limit is added to it."""
        if built.columns is None:
            return float("nan")
        report, columns = self.pool.problem.report, built.columns
        excess = sum(
            max(0.0, columns[name] / stock[name] - most)
            for name, most in report.limits
            if stock[name] > 0
        )
        before = stock[report.score]
        return float((columns[report.score] - before) / before + excess)


def by_programs(compare: Comparison, seed: int, count: int) -> Judge:
    """Return what compares policies by their means over so many programs a step."""

    def judge(policies: Sequence[Policy], step: int) -> F64:
        places = draw(seed, step, count, len(compare.programs))
        return np.asarray(compare(policies, places).mean(axis=1))

    return judge


def on_training_programs(setup: Setup) -> Comparison:
    """Return what compares policies on the training programs, each unit compiled once by stock."""
    pool = setup.pool
    programs = training_programs(pool.corpus)
    units = units_of(pool.corpus, programs)
    defaults = default_rollouts(pool, units, setup.tally, setup.progress, keep=True)
    return comparison(pool, programs, defaults, setup.tally, setup.progress)


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
    stock = [built.columns for built in build.run(reusing, jobs, progress)]
    usable = [(p, columns) for p, columns in zip(programs, stock, strict=True) if columns]
    if not usable:
        raise CorpusError("None of the training programs can be built; try 'nestor evaluate'.")
    own = {name for program, _ in usable for name in program.modules}
    kept = {name: done for name, done in defaults.items() if name in own}
    return Comparison(
        ReusingPool(pool, kept, tally),
        build,
        tuple(program for program, _ in usable),
        tuple(columns for _, columns in usable),
    )
