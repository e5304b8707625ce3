"""Check a decision problem before anything is trained on it.

A learner believes what a problem says: that compiles are reproducible, that the default's answers
are the default's, that answers are followed and matter to the score. :func:`check_problem` tries
each of these on a few units and says in one sentence which one does not hold, as Gymnasium's
``check_env`` does for environments.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from nestor.errors import NestorError
from nestor.problems.problem import Problem


class ProblemError(NestorError):
    """A problem that no learner can be trusted with."""


@dataclass(frozen=True)
class Play:
    """One unit (a module, a function, …) compiled."""

    x: npt.NDArray[np.float64]
    """Features of each question, in order, ``[questions, features]``."""
    default: npt.NDArray[np.int64]
    """The default heuristic's answers, ``[questions]``."""
    answers: npt.NDArray[np.int64]
    """The answers given, ``[questions]``."""
    score: float
    """What the compile cost; lower is better."""


Answer = Callable[[npt.NDArray[np.float64], int], int]
"""From the features of one question ``[features]`` and the default's answer to an answer. It says
the same of the same question."""

Compile = Callable[[str, Answer | None], Play]
"""Compile a unit with somebody's answers, or with the default's (None)."""


def check_problem(problem: Problem, units: Sequence[str], compile_unit: Compile) -> None:
    """Compile each of ``units`` several times and check what a learner relies on.

    :param units: at least one with a question to answer, and one whose score its answers change.
    :raises ProblemError: with the first thing that is wrong.
    """
    _check_description(problem)
    asked, differs = 0, False
    widths = set()
    for unit in units:
        play = compile_unit(unit, None)
        _check_play(problem, unit, play)
        _same(unit, play, compile_unit(unit, None), "compiled twice under the default")
        if (play.answers != play.default).any():
            raise ProblemError(f"{unit}: without a policy the answers are not the default's.")
        echo = compile_unit(unit, lambda _x, default: default)
        _same(unit, play, echo, "compiled with the default's answers given to it")
        asked += len(play.default)
        widths.add(play.x.shape[1])
        for answer in range(problem.actions):
            other = compile_unit(unit, lambda _x, _default, answer=answer: answer)  # type: ignore[misc]
            _check_play(problem, unit, other)
            if (other.answers != answer).any():
                raise ProblemError(f"{unit}: the answer {answer} was given and not taken.")
            differs |= other.score != play.score
    if asked == 0:
        raise ProblemError("None of the units has a question: name one where there is a choice.")
    if len(widths) > 1:
        raise ProblemError(
            f"Questions have {sorted(widths)} features; they must be as many always."
        )
    if not differs:
        raise ProblemError("No constant answer changes the score of any unit: nothing to learn.")


def _check_description(problem: Problem) -> None:
    if not re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", problem.name):
        raise ProblemError(f"'{problem.name}' is no name for a problem: small letters and hyphens.")
    if problem.actions < 2:
        raise ProblemError(f"{problem.name} has {problem.actions} actions: there is no choice.")
    if problem.default_tensor == problem.decision_tensor:
        raise ProblemError(f"{problem.name} logs the default and the decision in one tensor.")
    if not re.fullmatch(r"-O[0-3sz]", problem.capture_level):
        raise ProblemError(f"'{problem.capture_level}' is no optimisation level such as -Oz.")
    if not problem.score.strip():
        raise ProblemError(f"{problem.name} does not say what its score is.")


def _check_play(problem: Problem, unit: str, play: Play) -> None:
    if play.x.ndim != 2 or len(play.x) != len(play.default) or len(play.x) != len(play.answers):
        raise ProblemError(
            f"{unit}: {play.x.shape} features, {len(play.default)} defaults and"
            f" {len(play.answers)} answers do not belong together."
        )
    if not np.isfinite(play.x).all():
        raise ProblemError(f"{unit}: a feature is not finite; sanitise it where it is computed.")
    for name, values in (("default", play.default), ("answer", play.answers)):
        if ((values < 0) | (values >= problem.actions)).any():
            raise ProblemError(f"{unit}: a {name} is not among the {problem.actions} actions.")
    if not np.isfinite(play.score):
        raise ProblemError(f"{unit}: its score is {play.score}.")


def _same(unit: str, one: Play, other: Play, when: str) -> None:
    pairs = ((one.x, other.x), (one.default, other.default), (one.answers, other.answers))
    if one.score != other.score or not all(np.array_equal(a, b) for a, b in pairs):
        raise ProblemError(f"{unit}: {when}, it is not the same; a learner would chase the noise.")
