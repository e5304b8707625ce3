"""Searches over the choices of a schedule: each proposes what to evaluate next."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal

import numpy as np

from nestor.errors import NestorError
from nestor.policy.spec import Policy
from nestor.schedules.kernel.evaluate import Evaluation
from nestor.schedules.kernel.guess import guess
from nestor.schedules.language.decisions import Decision
from nestor.schedules.payload.loops import Loops
from nestor.schedules.target import Target
from nestor.schedules.tune import space
from nestor.schedules.tune.correction import corrected, positions
from nestor.schedules.tune.policy import losses, scores

SearchName = Literal["random", "tpe", "evolution", "learned"]

_POOL: Final = 512
"""Candidates among which the policy picks."""
_TRIES: Final = 200
"""Draws until a choice is taken that was evaluated before."""
_PARENTS: Final = 6
_KEPT: Final = 0.3
"""Part of a random choice that stands when the rest of it is computed."""
_ALTERNATIVES: Final = 8
"""Candidates that are tried in turn for a first guess that gives a kernel."""


@dataclass(frozen=True)
class Problem:
    """What a search knows of its task."""

    decisions: Sequence[Decision]
    loops: Loops
    target: Target
    guess: Mapping[str, int]
    """The choice computed without measurements; it is evaluated first by every search."""
    fixed: Mapping[str, int] = field(default_factory=dict)
    """Answers that a search may not change."""


Search = Callable[[Sequence[Evaluation]], dict[str, int]]
"""All evaluations so far → the next choice."""


def make_search(
    name: SearchName,
    problem: Problem,
    seed: int,
    policy: Policy | None = None,
) -> Search:
    """Return a search.

    :param policy: what ``learned`` starts from.
    :raises NestorError: if it needs a package that is not installed.
    """
    random = np.random.default_rng(seed)
    if name == "random":
        return lambda done: _new(done, lambda: space.drawn(problem.decisions, random))
    if name == "evolution":
        return lambda done: _new(done, lambda: _child(done, problem, random))
    if name == "tpe":
        return _Tpe(problem, seed)
    if policy is None:
        raise NestorError("The search 'learned' needs a policy or a database to learn from.")

    def learned(done: Sequence[Evaluation]) -> dict[str, int]:
        # As long as nothing has worked the policy may be wrong altogether: every second choice is
        # drawn.
        if len(done) % 2 and all(e.least is None for e in done):
            return _new(done, lambda: space.drawn(problem.decisions, random))
        return _ranked(done, problem, policy, random)[0]

    return learned


def first_guess(
    problem: Problem,
    policy: Policy,
    seed: int,
    usable: Callable[[Mapping[str, int]], bool] = lambda _: True,
) -> dict[str, int]:
    """Return the candidate that a policy picks before anything is measured.

    The computed guess stands for products with a transposed operand, of which no feature tells.

    :param usable: whether a choice gives a kernel at all; the computed guess stands if none does
        of the first few.
    """
    if problem.loops.transposed:
        return dict(problem.guess)
    ranked = _ranked([], problem, policy, np.random.default_rng(seed))
    return next((c for c in ranked[:_ALTERNATIVES] if usable(c)), dict(problem.guess))


def _new(done: Sequence[Evaluation], draw: Callable[[], dict[str, int]]) -> dict[str, int]:
    """Return a draw that was not evaluated yet, if there is one to be found."""
    seen = [dict(e.choice) for e in done]
    choice = draw()
    for _ in range(_TRIES):
        if choice not in seen:
            break
        choice = draw()
    return choice


def _child(
    done: Sequence[Evaluation], problem: Problem, random: np.random.Generator
) -> dict[str, int]:
    """Return a child of two of the fastest choices, or, before there are some, any choice."""
    good = sorted((e for e in done if e.least is not None), key=lambda e: e.least or 0.0)
    if len(good) < 2 or random.random() < 0.1:
        return space.drawn(problem.decisions, random)
    parents = good[:_PARENTS]
    one, other = (parents[int(random.integers(len(parents)))] for _ in range(2))
    return space.mutated(space.crossed(one.choice, other.choice, random), problem.decisions, random)


def _ranked(
    done: Sequence[Evaluation], problem: Problem, policy: Policy, random: np.random.Generator
) -> list[dict[str, int]]:
    """Return new candidates, best first: as the policy has it, corrected by what was measured.

    Candidates are the guess, random choices, neighbours of the fastest so far, and random answers
    to a few decisions with what is computed for the others: decisions depend on each other, and a
    good choice may be several steps from every other good one.
    """
    seen = {_frozen(e.choice) for e in done}
    good = sorted((e for e in done if e.least is not None), key=lambda e: e.least or 0.0)
    centres: list[Mapping[str, int]] = [problem.guess, *(e.choice for e in good[:3])]
    candidates = {_frozen(problem.guess): dict(problem.guess)}
    for number in range(_POOL):
        if number % 3 == 0:
            centre = centres[number // 3 % len(centres)]
            choice = space.mutated(centre, problem.decisions, random)
        elif number % 3 == 1:
            choice = completed(problem, random)
        else:
            choice = space.drawn(problem.decisions, random)
        candidates[_frozen(choice)] = choice
    fresh = [c for key, c in candidates.items() if key not in seen]
    if not fresh:
        return [dict(problem.guess)]
    tried = [e.choice for e in done]
    whole = [{**choice, **problem.fixed} for choice in (*fresh, *tried)]
    predicted = scores(policy, whole, problem.loops, problem.target)
    logits = corrected(
        predicted[: len(fresh)],
        positions(fresh, problem.decisions),
        -losses([e.least for e in done]),
        predicted[len(fresh) :],
        positions(tried, problem.decisions),
    )
    return [fresh[int(i)] for i in np.argsort(-logits, kind="stable")]


def completed(problem: Problem, random: np.random.Generator) -> dict[str, int]:
    """Return a choice of which some decisions are drawn, and the others computed for them."""
    drawn = space.drawn(problem.decisions, random)
    kept = {name: option for name, option in drawn.items() if random.random() < _KEPT}
    answers = guess(problem.decisions, problem.loops, problem.target, {**problem.fixed, **kept})
    return {decision.name: answers[decision.name] for decision in problem.decisions}


def _frozen(choice: Mapping[str, int]) -> tuple[tuple[str, int], ...]:
    return tuple(sorted(choice.items()))


@dataclass
class _Tpe:
    """Tree-structured Parzen estimator, by Optuna."""

    problem: Problem
    seed: int
    study: Any = field(init=False)
    trials: int = 0

    def __post_init__(self) -> None:
        try:
            import optuna
        except ImportError:
            raise NestorError(
                "The search 'tpe' needs Optuna: pip install 'nestor-mlgo[tune]'."
            ) from None
        optuna.logging.set_verbosity(optuna.logging.WARNING)
        self.optuna = optuna
        self.study = optuna.create_study(sampler=optuna.samplers.TPESampler(seed=self.seed))

    def __call__(self, done: Sequence[Evaluation]) -> dict[str, int]:
        import math

        distributions: dict[str, Any] = {
            d.name: self.optuna.distributions.CategoricalDistribution(list(d.options))
            for d in self.problem.decisions
        }
        for evaluation in done[self.trials :]:
            slow = 3.0 + math.log(min((e.least for e in done if e.least), default=1.0))
            value = slow if evaluation.least is None else math.log(evaluation.least)
            self.study.add_trial(
                self.optuna.trial.create_trial(
                    params=dict(evaluation.choice), distributions=distributions, value=value
                )
            )
        self.trials = len(done)

        def ask() -> dict[str, int]:
            trial = self.study.ask(distributions)
            self.study.tell(trial, state=self.optuna.trial.TrialState.FAIL)
            return {name: int(value) for name, value in trial.params.items()}

        return _new(done, ask)
