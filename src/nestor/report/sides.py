"""A program compiled under the default and under policies, with what is put down to each decision.

The score of a function is its part of the program's score by the weights of the default's build
(:class:`nestor.problem.score.Scorer`); where units have no score, it is what the function takes of
the program's own build (:class:`nestor.build.assembly.Assembly`). Credit is the problem's own
(:meth:`nestor.problem.problem.Problem.credit`). The score of the program is that of its own build.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

import numpy as np

from nestor.build.assembly import Assembly, measured_functions, sum_columns
from nestor.build.build import Build, BuildError, Job, find_build, summary_for
from nestor.build.units import unit_request
from nestor.compiler.objects import Measure
from nestor.corpus.model import Program
from nestor.policy.names import DEFAULT, NamedPolicy
from nestor.problem.overrides import OverrideFormat, Overrides
from nestor.problem.places import NO_PLACES, Places
from nestor.problem.problem import Pool
from nestor.problem.rollout import Rollout
from nestor.problem.score import Credit, Scorer
from nestor.problem.trajectory import Trajectory
from nestor.progress import Progress, silent


@dataclass(frozen=True)
class ModuleSide:
    """One module under one policy."""

    trajectory: Trajectory
    """With the names of functions."""
    parts: Mapping[str, float]
    """The score of each function, by its symbol."""
    total: float
    """The score of the module."""
    credit: Credit
    measured: Mapping[int, float] = field(default_factory=dict)
    """The change of the score by single decisions, each measured by leaving it alone to the
    default; by the number of the decision."""
    places: Places = NO_PLACES
    """Where the decisions and the functions stand in the source, as far as the module says."""


@dataclass(frozen=True)
class Side:
    """A program under one policy."""

    policy: NamedPolicy
    columns: Mapping[str, float]
    """The program by the columns of the problem's report."""
    modules: Mapping[str, ModuleSide]


@dataclass(frozen=True)
class Sides:
    """A program under the default and under policies, in the order of the command line."""

    program: str
    level: str
    """The optimisation level at which it is compiled."""
    default: Side
    policies: tuple[Side, ...]
    overrides: str | None = None
    """The text of the answers that stood above those of the policies, not of the default."""

    @property
    def all(self) -> tuple[Side, ...]:
        """The default first."""
        return (self.default, *self.policies)


class _Assembling(Protocol):
    def assemble(
        self, pool: Pool, program: Program, rollouts: Mapping[str, Rollout], mode: str
    ) -> Assembly: ...


def compile_sides(
    pool: Pool,
    program: Program,
    policies: Sequence[NamedPolicy],
    *,
    overrides: str | None = None,
    summary: bool = False,
    measure: int = 0,
    progress: Progress = silent,
) -> Sides:
    """Compile ``program`` under the default and under ``policies``.

    :param overrides: the text of a file of answers that stand above every policy's.
    :param summary: give policies that read one a summary of the program.
    :param measure: of each policy, how many decisions are measured one by one, those with the
        largest credit first; each takes the compile of a module, and a build of the program where
        units have no score.
    :raises BuildError: if a module cannot be compiled, or the program not be put together.
    """
    build = find_build(pool.problem, None)
    mode = build.modes[0]
    stock = Job(program, mode, DEFAULT)
    before = _compile(pool, stock, progress)
    scorers: Mapping[str, Scorer] = {}
    if pool.problem.scores_units:
        scorers = pool.problem.scorers(pool, [program], before, progress).units
    default = _side(pool, build, stock, before, scorers, None)
    sides = []
    for policy in policies:
        text = None
        if summary:
            text = summary_for(pool, build, program, policy, mode, progress)
        job = Job(program, mode, policy, overrides=overrides, summary=text)
        after = _compile(pool, job, progress)
        side = _side(pool, build, job, after, scorers, default)
        if measure:
            side = _measured(pool, build, job, side, scorers, measure, progress)
        sides.append(side)
    return Sides(program.name, pool.corpus.level, default, tuple(sides), overrides)


def _compile(pool: Pool, job: Job, progress: Progress) -> dict[str, Rollout]:
    assert job.policy is not None
    shown = replace(job, log=True, names=True)
    modules = job.program.modules
    requests = [replace(unit_request(pool, shown, name), places=True) for name in modules]
    done = pool.run(requests, progress, f"Compiling {job.policy.name}")
    for rollout in done:
        if rollout.trajectory is None or rollout.outcome is None:
            raise BuildError(f"{rollout.request.unit.name}: {rollout.failure}.")
    return {rollout.request.unit.name: rollout for rollout in done}


def _side(
    pool: Pool,
    build: Build,
    job: Job,
    rollouts: Mapping[str, Rollout],
    scorers: Mapping[str, Scorer],
    default: Side | None,
) -> Side:
    assert job.policy is not None
    columns = sum_columns([pool.problem.columns(done.outcome) for done in rollouts.values()])
    parts: Mapping[str, Mapping[str, float]] = {
        name: scorer.parts(rollouts[name].outcome) for name, scorer in scorers.items()
    }
    totals = {name: scorer.total(rollouts[name].outcome) for name, scorer in scorers.items()}
    assemble = getattr(build, "assemble", None)
    if assemble is not None:
        builder: _Assembling = build  # type: ignore[assignment]  # it has the method
        assembly = builder.assemble(pool, job.program, rollouts, job.mode)
        if assembly.columns is None:
            raise BuildError(f"{job.program.name}: {assembly.failure}.")
        columns |= assembly.columns
        if not pool.problem.scores_units:
            parts = _parts_of(assembly, rollouts)
            totals = {name: sum(own.values()) for name, own in parts.items()}
    modules = {}
    for name, done in rollouts.items():
        assert done.trajectory is not None
        log, own = done.trajectory, dict(parts.get(name, {}))
        credit = Credit(np.zeros(len(log)), np.zeros(len(log)))
        if default is not None:
            stock = default.modules[name]
            credit = pool.problem.credit((stock.trajectory, stock.parts), (log, own))
        total = totals.get(name, 0.0)
        modules[name] = ModuleSide(log, own, total, credit, places=done.places or NO_PLACES)
    return Side(job.policy, columns, modules)


def _parts_of(
    assembly: Assembly, rollouts: Mapping[str, Rollout]
) -> Mapping[str, Mapping[str, float]]:
    """Return what each function takes of the program, by the first module that has or names it.

    Without the price of its code, which is not in the program's score.
    """
    logs = {n: done.trajectory for n, done in rollouts.items() if done.trajectory is not None}
    left = dict(assembly.functions(logs))
    priced = assembly.priced(logs)
    if priced is not None:
        for number, amount in priced.functions.items():
            left[number] = left.get(number, 0.0) - priced.price * amount
    found = {}
    for module, log in logs.items():
        outcome = rollouts[module].outcome
        names = dict(log.names)
        if isinstance(outcome, Measure):
            own = measured_functions({module: outcome}, {module: log})
            names |= {number: function.name for _, function, number in own}
        found[module] = {name: left.pop(number) for number, name in names.items() if number in left}
    return found


def _measured(
    pool: Pool,
    build: Build,
    job: Job,
    side: Side,
    scorers: Mapping[str, Scorer],
    count: int,
    progress: Progress,
) -> Side:
    """Build again, each time with one decision of the policy left to the default."""
    form: OverrideFormat = pool.problem.overrides()
    places: list[tuple[float, str, int, Overrides]] = []
    for name, module in side.modules.items():
        log = module.trajectory
        rows = np.flatnonzero(log.answer != log.default)
        deviations = form.deviations(pool.plugin.toolchain, log)
        has_score = name in scorers or not pool.problem.scores_units
        if not has_score or len(deviations) != len(rows):
            continue  # this problem's overrides are not about single decisions
        for row, deviation in zip(rows.tolist(), deviations, strict=True):
            share = abs(float(module.credit.share[row]))
            places.append((-share, name, row, deviation.revert))
    chosen = sorted(places, key=lambda place: place[:3])[:count]
    jobs = [
        (name, replace(job, overrides=form.replaced(job.overrides, revert)))
        for _, name, _, revert in chosen
    ]
    if pool.problem.scores_units:
        without = _scores_of_units(pool, jobs, scorers, progress)
        before = [side.modules[name].total for name, _ in jobs]
    else:
        score = pool.problem.report.score
        done = build.run(pool, [other for _, other in jobs], progress)
        without = [None if built.columns is None else built.columns[score] for built in done]
        before = [side.columns[score]] * len(jobs)
    found: dict[str, dict[int, float]] = {}
    for (_, name, row, _), own, other_score in zip(chosen, before, without, strict=True):
        if other_score is not None:
            found.setdefault(name, {})[row] = own - other_score
    modules = {n: replace(m, measured=found.get(n, {})) for n, m in side.modules.items()}
    return replace(side, modules=modules)


def _scores_of_units(
    pool: Pool,
    jobs: Sequence[tuple[str, Job]],
    scorers: Mapping[str, Scorer],
    progress: Progress,
) -> list[float | None]:
    requests = [replace(unit_request(pool, job, name), keep=False) for name, job in jobs]
    done = pool.run(requests, progress, "Measuring decisions")
    return [
        None if rollout.outcome is None else scorers[name].total(rollout.outcome)
        for (name, _), rollout in zip(jobs, done, strict=True)
    ]
