"""Tune a payload: evaluate what a search proposes, keep all results, return the best."""

import json
import math
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from nestor.errors import NestorError
from nestor.policy.spec import Policy
from nestor.progress import Progress, silent
from nestor.schedules.kernel.evaluate import Evaluation, Task, compare, evaluate, lowers
from nestor.schedules.kernel.guess import SHARED, guess
from nestor.schedules.language.linking import decisions_of, link
from nestor.schedules.payload.loops import loops_of
from nestor.schedules.tune import policy as policies
from nestor.schedules.tune.database import Database, Result, key_of
from nestor.schedules.tune.searches import (
    Problem,
    SearchName,
    first_guess,
    make_search,
)
from nestor.schedules.tune.space import size

ENOUGH: Final = 24
"""Payloads in a database whose results teach more than the packaged policy knows."""


@dataclass(frozen=True)
class TuneSettings:
    """How to search."""

    search: SearchName = "learned"
    evaluations: int = 24
    """How many choices to evaluate, the guess among them."""
    seed: int = 0
    finalists: int = 3
    """How many of the evaluations time the fastest choices again, in turns: the shortest of many
    noisy times is not the fastest. None where there are fewer than four times as many."""


@dataclass(frozen=True)
class Tuned:
    """What a search found."""

    best: Evaluation
    """The fastest that is known, by this search or an earlier one."""
    first: Evaluation
    """That of the first guess: computed, or picked by the policy."""
    history: tuple[Evaluation, ...]
    reused: int
    """Of the evaluations, how many the database had."""
    stale: int
    """Results of another LLVM, or of another version of the schedule, that did not count."""

    @property
    def failures(self) -> int:
        """How many choices gave no kernel, a wrong one, or none in time."""
        return sum(e.status != "ok" for e in self.history)


def problem_of(task: Task) -> tuple[Problem, dict[str, int]]:
    """Return what a search may decide, and the answers that it may not change.

    Those are what the schedule selects itself, and what the task fixes.
    """
    every = decisions_of(task.library, task.schedule)
    fixed = {d.name: d.selected for d in every if d.selected is not None} | dict(task.fixed)
    loops = loops_of(task.payload)
    start = _without(guess(every, loops, task.target, fixed), fixed)
    free = [d for d in every if d.name not in fixed]
    problem = Problem(free, loops, task.target, start, fixed)
    return replace(problem, guess=_shareable(start, problem)), fixed


def first_choice(task: Task) -> dict[str, int]:
    """Return an answer to every decision without measuring: what the packaged policy picks."""
    problem, fixed = problem_of(task)
    if not problem.decisions:
        return fixed
    return _first_guess(task, problem, policies.packaged(), 0) | fixed


def _first_guess(task: Task, problem: Problem, policy: Policy, seed: int) -> dict[str, int]:
    """Return what a policy picks, with tiles enough for threads, if that can be lowered."""

    def usable(choice: Mapping[str, int]) -> bool:
        return lowers(task, {**_shareable(choice, problem), **problem.fixed})

    return _shareable(first_guess(problem, policy, seed, usable), problem)


def _shareable(choice: Mapping[str, int], problem: Problem) -> dict[str, int]:
    """Return a choice whose tiles are enough for threads, where threads share them.

    Results of one thread teach large tiles, of which there may be one only.
    """
    rows = next((d.options for d in problem.decisions if d.name == "tile_m"), ())
    if not problem.fixed.get("parallel") or not rows:
        return dict(choice)
    loops = problem.loops
    columns = loops.batch * math.ceil(loops.n / max(1, choice.get("tile_n", loops.n)))
    enough = [o for o in rows if math.ceil(loops.m / o) * columns >= SHARED]
    return {**choice, "tile_m": min(choice["tile_m"], max(enough, default=min(rows)))}


def tune(
    task: Task,
    settings: TuneSettings,
    database: Database,
    policy: Policy | None = None,
    progress: Progress = silent,
) -> Tuned:
    """Search for the fastest choice; what the database knows of the payload counts.

    :param policy: what ``learned`` starts from; None: as :func:`prior` has it.
    :raises NestorError: if nothing can be decided, or no choice gave a right kernel.
    """
    problem, fixed = problem_of(task)
    if not problem.decisions:
        raise NestorError(f"The schedule '{task.schedule}' leaves nothing to decide.")
    key = key_of(task)
    computed = problem.guess
    if settings.search == "learned":
        policy = policy or prior(task, database, settings.seed)
        problem = replace(problem, guess=_first_guess(task, problem, policy, settings.seed))
    search = make_search(settings.search, problem, settings.seed, policy)
    stale = database.stale(key)
    starts = _starts(problem, stale, computed)
    history: list[Evaluation] = []
    reused = 0
    total = min(settings.evaluations, size(problem.decisions))
    for number in range(total - _finalists(total, settings)):
        free = [replace(e, choice=_without(e.choice, fixed)) for e in history]
        choice = (starts[number] if number < len(starts) else search(free)) | fixed
        evaluation = database.find(key, choice)
        if evaluation is None:
            evaluation = evaluate(task, choice, settings.seed * 1000 + number)
            database.add(task, evaluation)
        else:
            reused += 1
        history.append(evaluation)
        progress(f"tuning {task.payload.name}", number + 1, total)
    every = (result.evaluation for result in database.results(key))
    right = [e for e in every if e.least is not None and fixed.items() <= e.choice.items()]
    if not right:
        reasons = "; ".join(dict.fromkeys(e.reason for e in history))
        raise NestorError(f"No choice gave a right kernel: {reasons[:500]}.")
    best = _fastest(task, right, _finalists(total, settings), settings.seed)
    return Tuned(best, history[0], tuple(history), reused, len(stale))


def resolved(task: Task, evaluation: Evaluation) -> str:
    """Return the schedule of an evaluation as plain MLIR, with a comment that says what it is."""
    linked = link(task.library, task.schedule, evaluation.choice)
    decided = " ".join(f"{name}={value}" for name, value in evaluation.choice.items())
    micro = "" if evaluation.least is None else f", {evaluation.least * 1e6:.1f} µs"
    return (
        f"// Made by 'nestor schedule tune' with LLVM {task.tools.version} for\n"
        f"// {task.target.processor} ({' '.join(task.target.flags)}){micro}.\n"
        f"// payload {task.payload.name} {task.payload.digest}\n"
        f"// {task.schedule} {decided}\n" + linked.readable()
    )


def _starts(
    problem: Problem, stale: Sequence[Result], computed: Mapping[str, int]
) -> list[dict[str, int]]:
    """Return what is tried before anything is searched for.

    The guess; what was best before, if that is still a choice; and what is computed, since a policy
    may have learned from processors that are not like this one.
    """
    options = {d.name: d.options for d in problem.decisions}
    starts = [dict(problem.guess)]
    for result in stale[:1]:
        before = {n: v for n, v in result.evaluation.choice.items() if n in options}
        fits = set(before) == set(options) and all(v in options[n] for n, v in before.items())
        if fits and result.evaluation.least is not None:
            starts.append(before)
    return [c for i, c in enumerate([*starts, dict(computed)]) if c not in starts[:i]]


def _finalists(total: int, settings: TuneSettings) -> int:
    return settings.finalists if total >= 4 * settings.finalists else 0


def _fastest(task: Task, right: Sequence[Evaluation], finalists: int, seed: int) -> Evaluation:
    """Return the fastest evaluation, by a second run of the best few where the budget has it."""
    ordered = sorted(right, key=lambda e: e.least or 0.0)
    choices = {json.dumps(dict(e.choice), sort_keys=True): e for e in ordered}
    few = list(choices.values())[:finalists]
    if len(few) < 2:
        return ordered[0]
    return min(compare(task, few, seed * 1000 + 999), key=lambda e: e.least or 0.0)


def _without(choice: Mapping[str, int], names: Container[str]) -> dict[str, int]:
    return {name: value for name, value in choice.items() if name not in names}


def prior(task: Task, database: Database, seed: int) -> Policy:
    """Return a policy that the results of other payloads teach, or, if they are few, the packaged.

    :param seed: of the training.
    """
    others = [r for r in database.all() if r.key.payload != task.payload.digest]
    if len({r.key.payload for r in others}) < ENOUGH:
        return policies.packaged()
    return policies.train(others, seed)
