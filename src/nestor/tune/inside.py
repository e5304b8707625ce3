"""Tune one program by a search that the compiler itself runs, function by function.

Those functions that cost most come first, several of a unit in one compile. What the search of each
found is kept, so that a run that was stopped goes on where it was. In the end the program is built
under everything that was found, and what made a function worse is dropped.
"""

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from nestor.build.build import Build, BuildError
from nestor.build.incremental import ProgramBuild
from nestor.corpus.model import Program
from nestor.errors import NestorError
from nestor.files import ReadError, read_regular, write_atomically
from nestor.policy.names import DEFAULT, NamedPolicy
from nestor.problem.overrides import Key, Overrides
from nestor.problem.problem import Pool, Problem
from nestor.problem.rollout import Request, Rollout
from nestor.progress import Progress, silent
from nestor.tune.compiler_search import CompilerSearch, Searched, Target, compiler_search_of
from nestor.tune.kept import demand_same
from nestor.tune.result import Tuned
from nestor.tune.search import Point

_LARGEST: Final = 1 << 30
"""Bytes of a kept search, at most."""


@dataclass(frozen=True)
class InsideSettings:
    """How far a search inside of the compiler goes."""

    trials: int = 400
    """Allocations, or whatever the compiler tries, per function."""


@dataclass(frozen=True)
class Spent:
    """What a search inside of the compiler took."""

    functions: int
    """That were searched."""
    better: int
    """For which something better was found."""
    trials: int
    cpu_seconds: float
    failures: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        """Return plain data."""
        return {
            "functions": self.functions,
            "better": self.better,
            "trials": self.trials,
            "cpu_seconds": self.cpu_seconds,
            "failures": list(self.failures),
        }


def tune_inside(
    pool: Pool,
    build: Build,
    program: Program,
    policy: NamedPolicy,
    settings: InsideSettings,
    seed: int,
    folder: Path,
    *,
    progress: Progress = silent,
) -> tuple[Tuned, Spent]:
    """Search the functions of ``program`` inside of the compiler.

    The overrides say everything that differs from the stock compiler: they are to be used with the
    policy ``default``, also if a search started from another. No function is worse than stock.

    :param policy: where searches start, besides the stock heuristic.
    :raises ProblemError: if the compiler does not search by itself.
    :raises NestorError: if ``folder`` holds another search, or the program cannot be built.
    """
    problem = pool.problem
    searcher = compiler_search_of(problem)
    assert searcher is not None, "the caller asks compiler_search_of first"
    identity = _identity(pool, build, program, policy, seed)
    kept = _Kept.load(folder / "search.json", identity, problem)
    stock = _rollouts(pool, program, None, progress)
    targets = searcher.targets(stock)
    _search(pool, searcher, stock, targets, policy, settings, seed, kept, progress)
    chosen = {target: kept.found[target] for target in targets if target in kept.found}
    overrides = {key: answer for own in chosen.values() for key, answer in own.items()}
    text = problem.overrides().to_text(overrides)
    worse = searcher.worse(stock, _rollouts(pool, program, text, progress))
    overrides = {k: a for k, a in overrides.items() if searcher.function_of(k) not in worse}
    before, after = (_build(pool, build, program, own) for own in ({}, overrides))
    if after.total > before.total:
        overrides, after = {}, before
    compiles = (len(kept.compiled) + 2 * len(program.modules)) / max(1, len(program.modules))
    tuned = Tuned(
        program=program.name,
        policy=DEFAULT,
        summary=None,
        overrides=overrides,
        comments=_comments(pool, problem, after, overrides),
        stock=before,
        best=after,
        modes=build.modes,
        curve=(Point.of(0.0, before), Point.of(compiles, after)),
    )
    spent = Spent(
        functions=len(kept.trials),
        better=len({searcher.function_of(key) for key in overrides}),
        trials=kept.spent_trials,
        cpu_seconds=kept.cpu_seconds,
        failures=tuple(kept.failures),
    )
    return tuned, spent


@dataclass
class _Kept:
    """What has been found so far; written to a file after every few compiles."""

    path: Path
    identity: Mapping[str, Any]
    problem: Problem
    trials: dict[Target, int]
    """How far each function has been searched."""
    found: dict[Target, Overrides]
    compiled: list[str]
    """The unit of each compile."""
    spent_trials: int = 0
    cpu_seconds: float = 0.0
    failures: tuple[str, ...] = ()

    @staticmethod
    def load(path: Path, identity: Mapping[str, Any], problem: Problem) -> "_Kept":
        kept = _Kept(path, identity, problem, {}, {}, [])
        try:
            content = json.loads(read_regular(path, "a kept search", limit=_LARGEST))
        except ReadError as error:
            if error.absent:
                return kept
            raise
        except ValueError as error:
            raise _damaged(path, error) from None
        try:
            demand_same(path, content["identity"], identity)
            texts = problem.overrides()
            for one in content["functions"]:
                target = Target(str(one["unit"]), texts.key(one["key"]))
                kept.trials[target] = int(one["trials"])
                kept.found[target] = texts.parse(one["overrides"])
            kept.compiled = [str(unit) for unit in content["compiled"]]
            kept.spent_trials = int(content["trials"])
            kept.cpu_seconds = float(content["cpu_seconds"])
            kept.failures = tuple(str(failure) for failure in content["failures"])
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise _damaged(path, error) from None
        return kept

    def add(self, unit: str, targets: Sequence[Target], trials: int, done: Searched) -> None:
        self.compiled.append(unit)
        self.spent_trials += done.trials
        self.cpu_seconds += done.cpu_seconds
        if done.failure is not None:
            self.failures = (*self.failures, f"{unit}: {done.failure}")
        for target in targets:
            self.trials[target] = trials
            self.found[target] = done.found.get(target, self.found.get(target, {}))

    def save(self) -> None:
        texts = self.problem.overrides()
        content = {
            "identity": self.identity,
            "functions": [
                {
                    "unit": target.unit,
                    "key": str(target.key),
                    "trials": trials,
                    "overrides": texts.to_text(self.found[target]),
                }
                for target, trials in self.trials.items()
            ],
            "compiled": self.compiled,
            "trials": self.spent_trials,
            "cpu_seconds": self.cpu_seconds,
            "failures": list(self.failures),
        }
        write_atomically(self.path, json.dumps(content))


def _damaged(path: Path, error: Exception) -> NestorError:
    return NestorError(f"{path} is no kept search ({error}): remove it, or take another --out.")


def _search(
    pool: Pool,
    searcher: CompilerSearch,
    stock: Mapping[str, Rollout],
    targets: Sequence[Target],
    policy: NamedPolicy,
    settings: InsideSettings,
    seed: int,
    kept: _Kept,
    progress: Progress,
) -> None:
    """Search what has not been searched so far."""
    missing = [one for one in targets if kept.trials.get(one, 0) < settings.trials]
    waiting: dict[str, list[Target]] = defaultdict(list)
    for target in missing:
        waiting[target.unit].append(target)
    parts = []
    for unit, own in waiting.items():
        size = max(1, searcher.at_once(stock[unit], settings.trials))
        parts += [own[start : start + size] for start in range(0, len(own), size)]
    rank = {target: number for number, target in enumerate(missing)}
    parts.sort(key=lambda part: rank[part[0]])

    def one(part: Sequence[Target]) -> Searched:
        rollout = stock[part[0].unit]
        return searcher.search(pool.place, rollout, part, policy, settings.trials, seed)

    for start in range(0, len(parts), pool.jobs):
        progress("Searching", start, len(parts))
        chunk = parts[start : start + pool.jobs]
        for part, done in zip(chunk, pool.map(one, chunk), strict=True):
            if not pool.cancelled:
                kept.add(part[0].unit, part, settings.trials, done)
        kept.save()
    progress("Searching", len(parts), len(parts))
    kept.save()


def _rollouts(
    pool: Pool, program: Program, overrides: str | None, progress: Progress
) -> dict[str, Rollout]:
    """Compile the units by the stock compiler, or under the default and overrides."""
    policy = None if overrides is None else DEFAULT
    units = [pool.corpus.module(name) for name in program.modules]
    requests = [Request(unit, policy, overrides=overrides) for unit in units]
    done = pool.run(requests, progress)
    for rollout in done:
        if not rollout.ok:
            raise BuildError(f"{rollout.request.unit.name}: {rollout.failure}.")
    return {rollout.request.unit.name: rollout for rollout in done}


def _build(pool: Pool, build: Build, program: Program, overrides: Overrides) -> ProgramBuild:
    builder = build.incremental(pool, program, DEFAULT, build.modes)
    try:
        return builder.build(overrides)
    finally:
        builder.close()


def _comments(
    pool: Pool, problem: Problem, build: ProgramBuild, overrides: Overrides
) -> Mapping[Key, str]:
    """Return what each override is about, in the names of the source."""
    format_of = problem.overrides()
    words = format_of.describe(pool.plugin.toolchain, build.trajectories.values())
    return {key: words[key] for key in overrides if key in words}


def _identity(
    pool: Pool, build: Build, program: Program, policy: NamedPolicy, seed: int
) -> dict[str, Any]:
    """Return what a search depends on; the number of trials may be raised later."""
    return {
        "corpus": pool.corpus.digest,
        "program": program.name,
        "problem": pool.problem.name,
        "build": build.name,
        "compiler": pool.plugin.toolchain.build_id,
        "plugin": pool.plugin.digest,
        "policy": policy.digest,
        "seed": seed,
    }
