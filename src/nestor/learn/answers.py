"""A policy's actions and answers for the questions of a trajectory.

The compiler is given answers, learners see actions. They differ only for a policy that says where
to *deviate*: its action 1 is the answer that the default would not give.
"""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from nestor.learn.batch import Examples
from nestor.policy.rule import THRESHOLD, VALUE, Actions, Rule
from nestor.policy.spec import Policy
from nestor.problem.trajectory import Trajectory


def greedy_answers(policy: Policy, trajectory: Trajectory) -> Actions:
    """Return what ``policy`` answers to the questions of ``trajectory``, ``[questions]``."""
    x = trajectory.rows(policy.features)
    if policy.rule == THRESHOLD:
        return policy.answer(x, trajectory.default > 0).astype(np.int64)
    inside = policy.decides(x, trajectory.questions)
    return np.where(inside, policy.actions(x, trajectory.questions), trajectory.default)


def changed_answers(policy: Policy, default: Trajectory) -> int:
    """Return how many answers of the default heuristic's trajectory ``policy`` would change."""
    return int((greedy_answers(policy, default) != default.default).sum())


def reproduces_default(policy: Policy, default: Trajectory) -> bool:
    """Tell whether a compile under ``policy`` would be the one that ``default`` is the log of.

    The questions of a compile follow from the answers before them. So a policy that answers all
    questions of the default heuristic's trajectory as the heuristic did meets just these.
    """
    return changed_answers(policy, default) == 0


def actions_of(
    policy: Policy, answers: npt.NDArray[np.generic], default: npt.NDArray[np.generic]
) -> Actions:
    """Return the actions by which ``policy`` gives ``answers``, ``[questions]``.

    :param answers: to the questions of a trajectory, ``[questions]``.
    :param default: the default heuristic's answers to them, ``[questions]``.
    """
    if policy.rule != THRESHOLD:
        return np.asarray(answers)
    positive = answers.astype(np.float64) > 0
    if policy.metadata.answers == "deviation":
        positive = positive != (default.astype(np.float64) > 0)
    return positive.astype(np.int64)


def default_actions(rule: Rule, trajectory: Trajectory) -> Actions:
    """Return the default's answers as actions of a policy that decides, ``[questions]``."""
    default = trajectory.default
    if rule == THRESHOLD:
        return (default > 0).astype(np.int64)
    return default.astype(np.float64 if rule == VALUE else np.int64)


def default_examples(
    trajectories: Sequence[Trajectory], features: Sequence[str], rule: Rule
) -> Examples:
    """Return all questions of ``trajectories`` with the default heuristic's answers."""
    counts = np.cumsum([0, *map(len, trajectories)])
    questions = [log.questions + start for log, start in zip(trajectories, counts, strict=False)]
    return Examples(
        np.concatenate([log.rows(features) for log in trajectories]),
        np.concatenate(questions).astype(np.int64),
        np.concatenate([default_actions(rule, log) for log in trajectories]),
    )
