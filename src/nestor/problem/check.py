"""Check a decision problem before anything is trained on it.

A learner believes what a problem says: that compiles are reproducible, that the default's answers
are the default's, that answers are followed and matter to the score. :func:`check_problem` tries
each of these on a few units and says in one sentence which one does not hold, as Gymnasium's
``check_env`` does for environments.
"""

import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from nestor.corpus.level import LEVELS
from nestor.corpus.model import Module
from nestor.policy import network
from nestor.policy.names import DEFAULT, NamedPolicy
from nestor.policy.network import Layer, LogNormalisation
from nestor.policy.rule import PICK, THRESHOLD
from nestor.problem.problem import Problem, ProblemError
from nestor.problem.rollout import Request, Rollout, Workplace
from nestor.problem.trajectory import Trajectory


def check_problem(problem: Problem, place: Workplace, units: Sequence[Module]) -> None:
    """Compile each of ``units`` several times and check what a learner relies on.

    :param place: where to compile, such as a pool's ``place``.
    :param units: at least one with a question to answer, and one whose score its answers change.
    :raises ProblemError: with the first thing that is wrong.
    """
    _check_description(problem)
    questions, differs = 0, False
    echo = _echo(problem)
    for unit in units:
        stock = _compile(problem, place, unit, None)
        default = _compile(problem, place, unit, DEFAULT)
        _check(problem, default)
        _same(problem, stock, default, "compiled under the default and by the stock compiler")
        again = _compile(problem, place, unit, DEFAULT)
        _same(problem, default, again, "compiled twice under the default")
        log = _log(default)
        if (log.answer != log.default).any():
            raise ProblemError(f"{unit.name}: without a policy the answers are not the default's.")
        if echo is not None:
            echoed = _compile(problem, place, unit, echo)
            _same(problem, default, echoed, "compiled with the default's answers given to it")
        questions += len(log)
        for policy in _constants(problem):
            other = _compile(problem, place, unit, policy)
            _check(problem, other)
            _check_followed(policy, other)
            _check_credit(problem, default, other)
            differs |= _score(problem, other) != _score(problem, default)
    if questions == 0:
        raise ProblemError("None of the units has a question: name one where there is a choice.")
    if not differs:
        raise ProblemError("No constant policy changes the score of any unit: nothing to learn.")


def _check_description(problem: Problem) -> None:
    if not re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", problem.name):
        raise ProblemError(f"'{problem.name}' is no name for a problem: small letters and hyphens.")
    if problem.default_column == "answer":
        raise ProblemError(f"{problem.name} logs the default and the answer in one column.")
    if not problem.levels or not set(problem.levels) <= set(LEVELS):
        levels = ", ".join(LEVELS)
        raise ProblemError(f"{problem.name} must name optimisation levels out of {levels}.")
    if not problem.score.strip() or not problem.summary.strip():
        raise ProblemError(f"{problem.name} does not say what is decided and what its score is.")
    if problem.report.score not in problem.report.columns:
        raise ProblemError(f"{problem.name} compares a column that its report does not have.")
    features = problem.features
    if not (features.free and features.few and features.unit and features.program):
        raise ProblemError(f"{problem.name} names no features: all its sets need at least one.")


def _compile(
    problem: Problem, place: Workplace, unit: Module, policy: NamedPolicy | None
) -> Rollout:
    request = Request(unit, policy, log=policy is not None, names=True, keep=True)
    rollout = problem.compile(request, place)
    if rollout.failure is not None:
        who = "the stock compiler" if policy is None else f"the policy {policy.name}"
        raise ProblemError(f"{unit.name}: compiling by {who} failed: {rollout.failure}.")
    if rollout.object is None:
        raise ProblemError(f"{unit.name}: its object was to be kept and was not.")
    return rollout


def _check(problem: Problem, rollout: Rollout) -> None:
    """Check one compile: questions and rows belong together, numbers are finite."""
    name, log = rollout.request.unit.name, _log(rollout)
    rows = log.decisions if log.candidates is None else log.candidates
    counts = np.bincount(log.questions, minlength=len(log))
    steps = np.diff(log.questions, prepend=0 if len(log) else -1)
    if len(rows) != len(log.questions) or len(counts) != len(log) or (counts == 0).any():
        raise ProblemError(
            f"{name}: {len(rows)} rows, the questions of {len(log.questions)} rows and"
            f" {len(log)} decisions do not belong together."
        )
    if (steps < 0).any():
        raise ProblemError(f"{name}: the rows of a question do not stand together.")
    if problem.rule != PICK and (counts != 1).any():
        raise ProblemError(f"{name}: a question has several rows; {problem.rule.name} takes one.")
    if not np.isfinite(log.rows(_read(problem))).all():
        raise ProblemError(f"{name}: a feature is not finite; replace it where it is computed.")
    for what, values in (("default", log.default), ("answer", log.answer)):
        limit = counts if problem.rule == PICK else 2
        if problem.rule in (PICK, THRESHOLD) and ((values < 0) | (values >= limit)).any():
            raise ProblemError(f"{name}: a {what} is none of its question's actions.")
    columns = problem.columns(rollout.outcome)
    for column in problem.report.columns:
        if not np.isfinite(columns.get(column, np.nan)):
            raise ProblemError(f"{name}: its {column} is {columns.get(column)}.")


def _check_followed(policy: NamedPolicy, rollout: Rollout) -> None:
    log = _log(rollout)
    assert policy.policy is not None
    if not len(log):
        return
    wanted = policy.policy.actions(log.rows(policy.features()), log.questions)
    if (log.answer != wanted)[log.by_policy].any():
        name = rollout.request.unit.name
        raise ProblemError(f"{name}: the answers of {policy.name} were given and not taken.")


def _check_credit(problem: Problem, before: Rollout, after: Rollout) -> None:
    log = _log(after)
    credit = problem.credit((_log(before), {}), (log, {}))
    if credit.change.shape != (len(log),) or credit.share.shape != (len(log),):
        name = after.request.unit.name
        raise ProblemError(f"{name}: credit must have a change and a share for each decision.")


def _same(problem: Problem, one: Rollout, other: Rollout, when: str) -> None:
    same = one.object == other.object and _score(problem, one) == _score(problem, other)
    if one.trajectory is not None and other.request.policy == one.request.policy:
        same &= _records(_log(one)) == _records(_log(other))
    if not same:
        name = one.request.unit.name
        raise ProblemError(f"{name}: {when}, it is not the same; a learner would chase the noise.")


def _records(log: Trajectory) -> tuple[bytes, bytes, bytes]:
    """Return a trajectory's numbers, to be compared."""
    candidates: npt.NDArray[Any] | None = log.candidates
    rows = b"" if candidates is None else candidates.tobytes()
    return log.decisions.tobytes(), rows, log.questions.tobytes()


def _score(problem: Problem, rollout: Rollout) -> float:
    return problem.columns(rollout.outcome)[problem.report.score]


def _log(rollout: Rollout) -> Trajectory:
    if rollout.trajectory is None:
        raise ProblemError(f"{rollout.request.unit.name}: its log was wanted and is not there.")
    return rollout.trajectory


def _read(problem: Problem) -> list[str]:
    """Return all features that policies may read without a summary of the program."""
    sets = problem.features
    return list(dict.fromkeys((*sets.free, *sets.few, *sets.unit)))


def _echo(problem: Problem) -> NamedPolicy | None:
    """Return the policy that gives the default's answers; None where no network can."""
    if problem.rule == THRESHOLD:
        return _linear(
            problem, "the default's answers", problem.features.free[0], 0, -1, "deviation"
        )
    if problem.rule == PICK:
        return _linear(problem, "the default's answers", problem.default_column, 1, 0)
    return None


def _constants(problem: Problem) -> list[NamedPolicy]:
    """Return policies whose answers differ: always the same, or by one feature."""
    feature = problem.features.free[0]
    constant = []
    if problem.rule != PICK:
        constant = [_linear(problem, f"always {n:+}", feature, 0, n) for n in (-1, 1)]
    if problem.rule == THRESHOLD:
        return constant
    return constant + [
        _linear(problem, f"{word} {name}", name, factor, 0)
        for name in dict.fromkeys((feature, *problem.features.few[:3]))
        for word, factor in (("least", -1), ("greatest", 1))
    ]


def _linear(
    problem: Problem, name: str, feature: str, factor: int, bias: int, answers: str = "decision"
) -> NamedPolicy:
    layer = Layer(np.full((1, 1), factor, np.float32), np.full(1, bias, np.float32))
    policy = network.build(
        (feature,),
        answers,
        LogNormalisation(np.zeros(1), np.ones(1)),
        (layer,),
        problem=problem.name,
        rule=problem.rule.name,
    )
    return NamedPolicy.of(policy, name)
