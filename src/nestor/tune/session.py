"""Tune one program from start to end: choose a start, search, keep what is resumable, sum up."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from nestor.build.build import Build
from nestor.build.incremental import ProgramBuild
from nestor.corpus.model import Program
from nestor.errors import NestorError
from nestor.files import ReadError, read_regular, write_atomically
from nestor.policy.names import DEFAULT, NamedPolicy
from nestor.problem.overrides import Overrides
from nestor.problem.problem import Pool, Problem
from nestor.progress import Progress, silent
from nestor.tune.moves import moves_of
from nestor.tune.result import Tuned
from nestor.tune.search import Observer, Point, SearchSettings, State, search

_LARGEST: Final = 1 << 30
"""Bytes of a kept search, at most."""


@dataclass(frozen=True)
class TuneSettings:
    """What a tuning run depends on besides program, policy and seed."""

    modes: tuple[str, ...]
    """The modes of the build whose mean score is to become small; it may grow in none of them."""
    sweep: bool = True
    """From the default heuristic, try the problem's other starts first and take the best."""


@dataclass(frozen=True)
class _Session:
    """What every build of one run has in common."""

    pool: Pool
    build: Build
    program: Program
    summary: str | None

    def once(
        self, policy: NamedPolicy, modes: Sequence[str], overrides: Overrides | None = None
    ) -> ProgramBuild:
        """Build the program once."""
        summary = None if policy.policy is None else self.summary
        builder = self.build.incremental(self.pool, self.program, policy, modes, summary)
        try:
            return builder.build(overrides or {})
        finally:
            builder.close()


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
    observe: Observer = lambda build, trials: None,
) -> Tuned:
    """Search for ``program``'s best build under ``policy`` and overrides.

    The score of the result is never above stock's in any of the modes. The state of the search is
    kept in ``folder`` after every step; the same call goes on from there.

    :param summary: the text of the program's summary, for policies that read one.
    :raises ProblemError: if the problem has no moves.
    :raises NestorError: if ``folder`` holds another search, or the program cannot be built.
    """
    problem = pool.problem
    moves = moves_of(problem)
    identity = _identity(pool, build, program, policy, settings, budget, seed, summary)
    path = folder / "search.json"
    kept = _load(path, identity)
    session = _Session(pool, build, program, summary)
    stock = session.once(DEFAULT, build.modes)
    limits = {mode: stock.scores()[mode] for mode in settings.modes}
    if kept is None:
        starts = moves.starts if policy.policy is None and settings.sweep else ()
        candidates = [policy, *(problem.policy(name) for name in starts)]
        chosen, curve = _choose_start(session, candidates, settings.modes, stock, progress)
        state = State(curve=curve)
    else:
        chosen, state = _start(kept, policy, problem), _state(kept, problem)
    builder = build.incremental(pool, program, chosen, settings.modes, summary)

    def keep(new: State) -> None:
        _save(path, identity, chosen, new, problem)

    try:
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
        overrides = moves.effective(builder.build(state.overrides), chosen)
    finally:
        builder.close()
    best = session.once(chosen, build.modes, overrides)
    if any(best.scores()[mode] > most for mode, most in limits.items()):
        chosen, best = DEFAULT, stock
    return Tuned(
        program=program.name,
        policy=chosen,
        summary=summary if problem.reads_summary(chosen.policy) else None,
        overrides=best.overrides,
        comments=moves.comments(pool.plugin.toolchain, best),
        stock=stock,
        best=best,
        modes=settings.modes,
        curve=state.curve,
    )


def _choose_start(
    session: _Session,
    candidates: Sequence[NamedPolicy],
    modes: Sequence[str],
    stock: ProgramBuild,
    progress: Progress,
) -> tuple[NamedPolicy, tuple[Point, ...]]:
    """Return the best of stock and ``candidates``, and the curve so far.

    A start whose score is above stock's in one of the modes is none.
    """
    best = DEFAULT
    limits = stock.scores()
    curve = [_mean_point(stock, modes)]
    for number, candidate in enumerate(candidates):
        progress("Building the starts", number, len(candidates))
        smallest = curve[-1]
        if candidate.policy is not None:
            build = session.once(candidate, modes)
            grown = any(build.scores()[mode] > limits[mode] for mode in modes)
            if build.total < smallest.total and not grown:
                best, smallest = candidate, Point.of(0.0, build)
        curve.append(Point(number + 1.0, smallest.total, smallest.others))
    progress("Building the starts", len(candidates), len(candidates))
    return best, tuple(curve)


def _mean_point(build: ProgramBuild, modes: Sequence[str]) -> Point:
    """Return where ``build`` stands as the mean over some of its modes, before any compile."""
    means = {
        name: sum(build.columns[mode][name] for mode in modes) / len(modes)
        for name in build.columns[modes[0]]
    }
    return Point(0.0, means.pop(build.score), means)


def _identity(
    pool: Pool,
    build: Build,
    program: Program,
    policy: NamedPolicy,
    settings: TuneSettings,
    budget: SearchSettings,
    seed: int,
    summary: str | None,
) -> dict[str, Any]:
    """Return what a search depends on; the number of compiles may be raised later."""
    return {
        "corpus": pool.corpus.digest,
        "program": program.name,
        "problem": pool.problem.name,
        "build": build.name,
        "compiler": pool.plugin.toolchain.build_id,
        "plugin": pool.plugin.digest,
        "policy": policy.digest,
        "summary": None if summary is None else hashlib.sha256(summary.encode()).hexdigest(),
        "settings": json.loads(json.dumps(asdict(settings))),
        "search": {k: v for k, v in asdict(budget).items() if k != "compiles"},
        "seed": seed,
    }


def _save(
    path: Path, identity: Mapping[str, Any], chosen: NamedPolicy, state: State, problem: Problem
) -> None:
    content = {
        "identity": identity,
        "start": chosen.digest,
        "step": state.step,
        "overrides": problem.overrides().to_text(state.overrides),
        "tried": {str(key): count for key, count in sorted(state.tried.items())},
        "curve": [point.to_json() for point in state.curve],
    }
    write_atomically(path, json.dumps(content))


def _load(path: Path, identity: Mapping[str, Any]) -> dict[str, Any] | None:
    try:
        text = read_regular(path, "a kept search", limit=_LARGEST)
    except ReadError as error:
        if error.absent:
            return None
        raise
    try:
        content: dict[str, Any] = json.loads(text)
        own = content["identity"]
    except (ValueError, KeyError, TypeError) as error:
        raise NestorError(
            f"{path} is no kept search ({error}): remove it, or take another --out."
        ) from None
    if own != identity:
        raise NestorError(
            f"{path.parent} holds the search of another program, policy, compiler or seed: take"
            " another --out, or remove it."
        )
    return content


def _start(content: Mapping[str, Any], policy: NamedPolicy, problem: Problem) -> NamedPolicy:
    """Return the policy from which a kept search started."""
    starts = (problem.policy(name) for name in moves_of(problem).starts)
    for start in (policy, DEFAULT, *starts):
        if start.digest == content["start"]:
            return start
    raise NestorError("The kept search started from a policy that is gone: take another --out.")


def _state(content: Mapping[str, Any], problem: Problem) -> State:
    overrides = problem.overrides()
    return State(
        step=int(content["step"]),
        overrides=overrides.parse(content["overrides"]),
        tried={overrides.key(words): int(count) for words, count in content["tried"].items()},
        curve=tuple(Point.from_json(point) for point in content["curve"]),
    )
