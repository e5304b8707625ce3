"""All learners by the name that the command line uses, and what each of them can do.

A new one is a page with a frozen dataclass of settings and a function ``set_up``, and a line in
:data:`LEARNERS`.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

from nestor.errors import NestorError, meant
from nestor.learn.algorithms import (
    ars,
    best_of,
    cloning,
    cma_es,
    distil,
    dqn,
    es,
    portfolio,
    ppo,
    profile,
    reinforce,
)
from nestor.learn.setup import Ready, Setup
from nestor.policy.rule import RULES
from nestor.problem.problem import Problem, ProblemError

_ANY_RULE: Final = tuple(RULES)


@dataclass(frozen=True)
class Entry:
    """A learner as the command line offers it, with its capabilities."""

    settings: type[Any]
    """A frozen dataclass, whose fields are options."""
    set_up: Callable[[Any, Setup], Ready]
    summary: str
    rules: tuple[str, ...] = _ANY_RULE
    """Names of the rules that it serves."""
    init: Literal["optional", "required", "refused"] = "optional"
    """Whether it starts from a policy that the user names (``--init``)."""
    budgeted: bool = True
    """Whether a budget of compiles or CPU minutes can end it."""
    estimates: bool = True
    """Whether it can learn from a model of the score in place of compiles (``--estimate``)."""
    tries: bool = False
    """Whether it needs a compiler that tries a portfolio's members (``Problem.tries``)."""
    searches: bool = False
    """Whether it searches programs: it needs a problem with moves, and keeps trials
    (``--trials``)."""
    scores_units: bool = True
    """Whether units must have scores of their own (``Problem.scores_units``)."""


LEARNERS: Final[Mapping[str, Entry]] = {
    "distil": Entry(
        distil.DistilSettings,
        distil.set_up,
        "search every program, learn what leaving the default saves, search again",
        rules=("threshold",),
        budgeted=False,
        estimates=False,
        searches=True,
        scores_units=False,
    ),
    "bc": Entry(
        cloning.CloningSettings,
        cloning.set_up,
        "behavioural cloning of the default heuristic, the warm start of es",
        init="refused",
        budgeted=False,
        estimates=False,
        scores_units=False,
    ),
    "es": Entry(
        es.EvolutionSettings,
        es.set_up,
        "evolution strategies from --init, scored by whole programs, never worse than before",
        init="required",
        estimates=False,
        scores_units=False,
    ),
    "ars": Entry(
        ars.RandomSearchSettings, ars.set_up, "augmented random search over a linear policy"
    ),
    "cma": Entry(
        cma_es.CmaSettings,
        cma_es.set_up,
        "CMA-ES over a linear policy, by whole programs where modules have no score",
        scores_units=False,
    ),
    "portfolio": Entry(
        portfolio.PortfolioSettings,
        portfolio.set_up,
        "several linear policies of which the compiler keeps the best by function",
        rules=("pick", "value"),
        estimates=False,
        tries=True,
    ),
    "reinforce": Entry(
        reinforce.ReinforceSettings,
        reinforce.set_up,
        "REINFORCE, each decision rewarded by what it can affect",
    ),
    "ppo": Entry(
        ppo.PpoSettings,
        ppo.set_up,
        "the same by proximal policy optimisation (--ppo.preset mlgo: as published)",
    ),
    "dqn": Entry(
        dqn.DqnSettings,
        dqn.set_up,
        "deep Q-learning: the value of each action",
        rules=("threshold", "pick"),
    ),
    "profile": Entry(
        profile.ProfileSettings,
        profile.set_up,
        "what profiles say that answers would save of a run, predicted without one",
        rules=("threshold",),
        init="refused",
        budgeted=False,
        estimates=False,
        scores_units=False,
    ),
    "best-of": Entry(
        best_of.BestOfSettings,
        best_of.set_up,
        "imitation of the best of several policies, unit by unit (BC-Max)",
    ),
}
"""Every learner."""


def find_learner(name: str) -> Entry:
    """Return the learner of this name.

    :raises NestorError: if there is none.
    """
    if name not in LEARNERS:
        near = meant(name, LEARNERS)
        raise NestorError(f"There is no learner '{name}'{near}; there are: {', '.join(LEARNERS)}.")
    return LEARNERS[name]


def usual_learner(problem: Problem) -> str:
    """Return the name of the learner to take for ``problem`` if a user names none.

    Searches distilled where programs can be searched, and a learner by gradient elsewhere.
    """
    try:
        problem.moves()
    except ProblemError:
        return "ppo"
    return next(name for name, entry in LEARNERS.items() if entry.searches)


def check_setup(name: str, setup: Setup) -> None:
    """Refuse what the learner of this name cannot do, before anything is compiled.

    :raises NestorError: with one sentence that says what to change.
    """
    entry, problem = find_learner(name), setup.problem
    if problem.rule.name not in entry.rules:
        raise NestorError(
            f"The learner {name} serves the rule {' and '.join(entry.rules)}, not that of"
            f" {problem.name}, {problem.rule.name}:"
            f" {_others(lambda e: problem.rule.name in e.rules)}."
        )
    if entry.tries and not problem.tries:
        raise NestorError(
            f"The learner {name} needs a compiler that tries several policies within a compile;"
            f" that of {problem.name} does not:"
            f" {_others(lambda e: problem.rule.name in e.rules and not e.tries)}."
        )
    if entry.scores_units and not problem.scores_units:

        def able(other: Entry) -> bool:
            served = problem.rule.name in other.rules and other.init != "required"
            return served and not other.scores_units

        raise NestorError(
            f"The learner {name} learns from the scores of modules alone, and {problem.name} scores"
            f" whole programs: {_others(able)}."
        )
    if entry.searches:
        problem.moves()  # raises ProblemError if there are none
    if setup.estimate is not None and not (entry.estimates and problem.scores_units):
        raise NestorError(f"The learner {name} needs whole compiles: leave out --estimate.")
    if setup.init is not None and entry.init == "refused":
        raise NestorError(f"The learner {name} starts from the default: leave out --init.")
    if setup.init is None and entry.init == "required":
        raise NestorError(
            f"The learner {name} needs a policy to start from: train one with --learner bc, then"
            " pass it with --init."
        )
    if setup.trials is not None and not entry.searches:
        raise NestorError(
            f"The learner {name} searches no programs: leave out --trials, or"
            f" {_others(lambda e: e.searches)}."
        )
    if setup.budget.units is not None and not entry.budgeted:
        raise NestorError(
            f"The learner {name} has limits of its own: leave out --budget, or"
            f" {_others(lambda e: e.budgeted)}."
        )
    if setup.budget.cpu_minutes is not None and not problem.scores_units:
        raise NestorError(
            f"{problem.name} scores whole programs, whose runs have no price in CPU minutes: give"
            " --budget.compiles."
        )


def _others(able: Callable[[Entry], bool]) -> str:
    names = [name for name, entry in LEARNERS.items() if able(entry)]
    return f"take --learner {' or '.join(names)}"
