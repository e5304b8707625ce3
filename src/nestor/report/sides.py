"""A program compiled under the default and under policies, with what is put down to each decision.

The score of a function is its part of the program's score by the weights of the default's build
(:class:`nestor.problem.score.Scorer`), and credit is the problem's own
(:meth:`nestor.problem.problem.Problem.credit`). The score of the program is that of its own build.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

import numpy as np

from nestor.build.assembly import Assembly, sum_columns
from nestor.build.build import BuildError, find_build, summary_for
from nestor.corpus.model import Program
from nestor.policy.names import DEFAULT, NamedPolicy
from nestor.problem.overrides import OverrideFormat
from nestor.problem.places import NO_PLACES, Places
from nestor.problem.problem import Pool
from nestor.problem.rollout import Request, Rollout
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
    summary: bool = False,
    measure: int = 0,
    progress: Progress = silent,
) -> Sides:
    """Compile ``program`` under the default and under ``policies``.

    :param summary: give policies that read one a summary of the program.
    :param measure: of each policy, how many decisions are measured one by one, those with the
        largest credit first; each takes the compile of a module.
    :raises BuildError: if a module cannot be compiled, or the program not be put together.
    """
    before = _compile(pool, program, DEFAULT, None, progress)
    scorers = pool.problem.scorers(pool, [program], before, progress).units
    default = _side(pool, program, DEFAULT, before, scorers, None)
    sides = []
    for policy in policies:
        text = None
        if summary:
            build = find_build(pool.problem, None)
            text = summary_for(pool, build, program, policy, build.modes[0], progress)
        after = _compile(pool, program, policy, text, progress)
        side = _side(pool, program, policy, after, scorers, default)
        if measure:
            side = _measured(pool, side, after, scorers, measure, progress)
        sides.append(side)
    return Sides(program.name, pool.corpus.level, default, tuple(sides))


def _compile(
    pool: Pool, program: Program, policy: NamedPolicy, summary: str | None, progress: Progress
) -> dict[str, Rollout]:
    requests = [
        Request(
            pool.corpus.module(name),
            policy,
            summary=summary,
            log=True,
            names=True,
            keep=True,
            places=True,
        )
        for name in program.modules
    ]
    done = pool.run(requests, progress, f"Compiling {policy.name}")
    for rollout in done:
        if rollout.trajectory is None or rollout.outcome is None:
            raise BuildError(f"{rollout.request.unit.name}: {rollout.failure}.")
    return {rollout.request.unit.name: rollout for rollout in done}


def _side(
    pool: Pool,
    program: Program,
    policy: NamedPolicy,
    rollouts: Mapping[str, Rollout],
    scorers: Mapping[str, Scorer],
    default: Side | None,
) -> Side:
    modules = {}
    for name, done in rollouts.items():
        assert done.trajectory is not None
        log, scorer = done.trajectory, scorers.get(name)
        parts = {} if scorer is None else dict(scorer.parts(done.outcome))
        total = 0.0 if scorer is None else scorer.total(done.outcome)
        credit = Credit(np.zeros(len(log)), np.zeros(len(log)))
        if default is not None:
            stock = default.modules[name]
            credit = pool.problem.credit((stock.trajectory, stock.parts), (log, parts))
        modules[name] = ModuleSide(log, parts, total, credit, places=done.places or NO_PLACES)
    build = find_build(pool.problem, None)
    columns = sum_columns([pool.problem.columns(done.outcome) for done in rollouts.values()])
    assemble = getattr(build, "assemble", None)
    if assemble is not None:
        builder: _Assembling = build  # type: ignore[assignment]  # it has the method
        assembly = builder.assemble(pool, program, rollouts, build.modes[0])
        if assembly.columns is None:
            raise BuildError(f"{program.name}: {assembly.failure}.")
        columns |= assembly.columns
    return Side(policy, columns, modules)


def _measured(
    pool: Pool,
    side: Side,
    rollouts: Mapping[str, Rollout],
    scorers: Mapping[str, Scorer],
    count: int,
    progress: Progress,
) -> Side:
    """Compile modules again, each with one decision of the policy left to the default."""
    form: OverrideFormat = pool.problem.overrides()
    places: list[tuple[float, str, int, Request]] = []
    for name, module in side.modules.items():
        log = module.trajectory
        rows = np.flatnonzero(log.answer != log.default)
        deviations = form.deviations(pool.plugin.toolchain, log)
        if name not in scorers or len(deviations) != len(rows):
            continue  # this problem's overrides are not about single decisions
        for row, deviation in zip(rows.tolist(), deviations, strict=True):
            request = replace(
                rollouts[name].request,
                overrides=form.to_text(deviation.revert),
                log=False,
                names=False,
                keep=False,
                places=False,
            )
            places.append((-abs(float(module.credit.share[row])), name, row, request))
    chosen = sorted(places, key=lambda place: place[:3])[:count]
    done = pool.run([request for *_, request in chosen], progress, "Measuring decisions")
    found: dict[str, dict[int, float]] = {}
    for (_, name, row, _), rollout in zip(chosen, done, strict=True):
        if rollout.outcome is not None:
            without = scorers[name].total(rollout.outcome)
            found.setdefault(name, {})[row] = side.modules[name].total - without
    modules = {n: replace(m, measured=found.get(n, {})) for n, m in side.modules.items()}
    return replace(side, modules=modules)
