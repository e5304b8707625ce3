"""Tune one program from start to end: choose a start, search, keep what is resumable, sum up."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from nestor.build.build import Build, BuildError
from nestor.build.incremental import ProgramBuild, ProgramBuilder
from nestor.corpus.model import Program
from nestor.errors import NestorError
from nestor.policy.names import DEFAULT, NamedPolicy
from nestor.problem.levels import decides
from nestor.problem.problem import Pool
from nestor.progress import Progress, silent
from nestor.tune.kept import KeptSearch, identity_of, load, save
from nestor.tune.moves import MoveSource, moves_of
from nestor.tune.proposals import propose
from nestor.tune.result import Tuned
from nestor.tune.search import Observer, SearchSettings, search
from nestor.tune.state import Point, State
from nestor.tune.steps.limits import Limits


@dataclass(frozen=True)
class TuneSettings:
    """What a tuning run depends on besides program, policy and seed."""

    modes: tuple[str, ...]
    """The modes of the build whose mean score is to become small; it may grow in none of them."""
    sweep: bool = True
    """From the default heuristic, try the problem's other starts first and take the best."""
    policies: tuple[str, ...] = ()
    """Names of further policies; the search starts from the best of all."""


def summary_for_search(
    pool: Pool, build: Build, program: Program, mode: str, progress: Progress = silent
) -> str | None:
    """Return the summary of the stock program that tells a search which functions can go away.

    None where the problem has none, and where the compiler sees the program as a whole.
    """
    if build.whole:
        return None
    return pool.problem.summaries(pool, [program], [mode], progress).get((program.name, mode))


@dataclass(frozen=True)
class _Start:
    """A policy that a search may start from, and the builds under it."""

    policy: NamedPolicy
    builder: ProgramBuilder


@dataclass(frozen=True)
class _Session:
    """What every build of one run has in common."""

    pool: Pool
    build: Build
    program: Program
    modes: tuple[str, ...]
    summary: str | None

    def start(self, policy: NamedPolicy) -> _Start:
        """Return what builds under ``policy``."""
        summary = None if policy.policy is None else self.summary
        builder = self.build.incremental(self.pool, self.program, policy, self.modes, summary)
        return _Start(policy, builder)


def tune(
    pool: Pool,
    build: Build,
    program: Program,
    policy: NamedPolicy,
    settings: TuneSettings,
    budget: SearchSettings,
    seed: int,
    folder: Path,
    *,
    summary: str | None = None,
    progress: Progress = silent,
    observe: Observer = lambda build, evidence, trials: None,
) -> Tuned:
    """Search for ``program``'s best build under ``policy`` and overrides.

    The score of the result is never above stock's in any of the modes. The state of the search is
    kept in ``folder`` after every step, with what the verified build is made of; the same call
    goes on from there and compiles nothing again.

    :param summary: the text of the program's summary, for moves and for policies that read one.
    :raises ProblemError: if the problem has no moves.
    :raises NestorError: if ``folder`` holds another search, or the program cannot be built.
    """
    problem = pool.problem
    moves = moves_of(problem, summary)
    identity = identity_of(pool, build, program, policy, settings, budget, seed, summary)
    path, units = folder / "search.json", folder / "units"
    session = _Session(pool, build, program, settings.modes, summary)
    starts = moves.starts if policy.policy is None and settings.sweep else ()
    names = (*settings.policies, *starts) if decides(problem, pool.corpus) else ()
    further = [problem.policy(name) for name in names]
    candidates = list({one.digest: one for one in (policy, *further)}.values())
    kept = load(path, identity, problem)
    if kept is None:
        chosen, stock, curve = _choose_start(session, candidates, progress)
        state = State(curve=curve)
    else:
        chosen = session.start(_policy(kept.start, candidates))
        chosen.builder.take_from_disk(units)
        stock, state = kept.stock, kept.state
    most = {problem.report.score: 1.0, **dict(problem.report.limits)}
    limits = {
        mode: {column: part * stock.columns[mode][column] for column, part in most.items()}
        for mode in settings.modes
    }
    if problem.report.unit_part is not None:
        mean = sum(stock.scores()[mode] for mode in settings.modes) / len(settings.modes)
        budget = replace(budget, unit=problem.report.unit_part * mean)
    builder = chosen.builder

    def keep(new: State) -> None:
        save(path, identity, KeptSearch(chosen.policy.digest, stock, new), problem)
        builder.keep_only(new.overrides)
        builder.keep_on_disk(units)

    try:
        if kept is None:
            state = _proposed(builder, moves, state, limits, budget, progress)
        keep(state)
        state = search(
            builder,
            moves,
            state,
            budget,
            seed,
            progress=progress,
            observe=observe,
            keep=keep,
            limits=limits,
        )
        verified = builder.build(state.overrides, modes=build.modes)
        # What it leaves out changes no answer, so the build is the same.
        best = replace(verified, overrides=moves.effective(verified, chosen.policy))
    finally:
        builder.close()
    return Tuned(
        program=program.name,
        policy=chosen.policy,
        summary=summary if problem.reads_summary(chosen.policy.policy) else None,
        overrides=best.overrides,
        comments=moves.comments(pool.plugin.toolchain, best),
        stock=stock,
        best=best,
        modes=settings.modes,
        curve=state.curve,
    )


def _choose_start(
    session: _Session, candidates: Sequence[NamedPolicy], progress: Progress
) -> tuple[_Start, ProgramBuild, tuple[Point, ...]]:
    """Return the best of stock and ``candidates``, the stock build, and the curve so far.

    A start whose score is above stock's in one of the modes is none, and neither is one after the
    first that cannot be built: it may take longer than a compile may. The stock build is in every
    mode of the build; it costs a compile that the curve does not count.

    :raises BuildError: if stock or the first of ``candidates`` cannot be built.
    """
    modes = session.modes
    best = session.start(DEFAULT)
    stock = best.builder.build({}, modes=session.build.modes)
    limits = stock.scores()
    curve = [_mean_point(stock, modes)]
    for number, candidate in enumerate(candidates):
        progress("Building the starts", number, len(candidates))
        smallest = curve[-1]
        if candidate.policy is not None:
            start = session.start(candidate)
            worse = start
            try:
                build = start.builder.build({})
                grown = any(build.scores()[mode] > limits[mode] for mode in modes)
                if build.total < smallest.total and not grown:
                    best, worse, smallest = start, best, Point.of(0.0, build)
            except BuildError:
                if number == 0 or session.pool.cancelled:
                    raise
            finally:
                worse.builder.close()
        curve.append(Point(number + 1.0, smallest.total, smallest.others))
    progress("Building the starts", len(candidates), len(candidates))
    return best, stock, tuple(curve)


def _proposed(
    builder: ProgramBuilder,
    moves: MoveSource,
    state: State,
    limits: Limits,
    budget: SearchSettings,
    progress: Progress,
) -> State:
    """Return ``state`` with the best proposal, for half of the budget at most."""
    start = builder.build(state.overrides)
    builder.compiled = 0
    best, written = propose(builder, moves, start, limits, budget.compiles / 2, progress)
    if not builder.compiled:
        return state
    spent = state.curve[-1].compiles + builder.compiles
    point = Point.of(spent, best)
    return replace(state, overrides=best.overrides, curve=(*state.curve, point), written=written)


def _mean_point(build: ProgramBuild, modes: Sequence[str]) -> Point:
    """Return where ``build`` stands as the mean over some of its modes, before any compile."""
    means = {
        name: sum(build.columns[mode][name] for mode in modes) / len(modes)
        for name in build.columns[modes[0]]
    }
    return Point(0.0, means.pop(build.score), means)


def _policy(digest: str, candidates: Sequence[NamedPolicy]) -> NamedPolicy:
    """Return the policy from which a kept search started."""
    for start in (DEFAULT, *candidates):
        if start.digest == digest:
            return start
    raise NestorError("The kept search started from a policy that is gone: take another --out.")
