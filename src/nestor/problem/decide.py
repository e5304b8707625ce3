"""Take decisions by a policy in Python, as a request says: greedy, or sampled from its seed.

For problems whose compiler is asked from Python; the plugin takes the same decisions in C++.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import xxhash

from nestor.policy.draws import uniform
from nestor.policy.questions import first_rows
from nestor.policy.rule import PICK, THRESHOLD
from nestor.policy.spec import Policy, PolicyError
from nestor.problem.rollout import Request
from nestor.problem.trajectory import F64, I64


@dataclass(frozen=True)
class Decided:
    """How some questions are decided, each array ``[questions]``."""

    answer: npt.NDArray[Any]
    """What the compiler is given."""
    logit: F64
    """Of the row that was chosen; 0 where the default decides."""
    log_probability: F64
    """Of the action, at the request's temperature; 0 where the default decides."""


def decide(
    request: Request,
    x: F64,
    question: I64,
    default: npt.NDArray[Any],
    keys: Sequence[str],
) -> Decided:
    """Decide questions by ``request.policy``; without a policy, or a file of one, as the default.

    :param x: the policy's features, ``[rows, features]``.
    :param question: the question of each row, ``[rows]``.
    :param default: the default heuristic's answers, ``[questions]``.
    :param keys: a text for each question, from which its random number is drawn: equal texts draw
        equal numbers.
    """
    policy = None if request.policy is None else request.policy.policy
    if policy is None:
        nothing = np.zeros(len(default))
        return Decided(default, nothing, nothing)
    rule = policy.rule
    temperature = 1.0 if request.temperature is None else request.temperature
    logits = policy.logits(x)
    if request.seed is None:
        actions = rule.greedy(logits, question)
    else:
        counters = np.array([xxhash.xxh3_64_intdigest(key.encode()) for key in keys], np.uint64)
        actions = rule.sample(logits, question, uniform(request.seed, counters), temperature)
    log_probability = rule.log_probability(logits, question, actions, temperature)
    inside = policy.decides(x, question)  # out of its range the default decides
    log_probability = np.where(inside, log_probability, 0.0)
    if rule != THRESHOLD:
        first = first_rows(question)
        logit = logits[first + actions if rule == PICK else first]
        return Decided(
            np.where(inside, actions, default), np.where(inside, logit, 0.0), log_probability
        )
    actions = actions * inside
    answers = policy.answers_of(actions > 0, default > 0)
    return Decided(answers.astype(np.int64), logits, log_probability)


def feature_columns(policy: Policy, rule: str, offered: Sequence[str]) -> list[int]:
    """Return where each feature of ``policy`` stands among those ``offered``.

    :param rule: the name of the problem's rule.
    :raises PolicyError: if the policy has another rule, or reads what is not offered.
    """
    if policy.metadata.rule != rule:
        raise PolicyError(f"The policy's rule is {policy.metadata.rule}; it must be {rule}.")
    missing = [name for name in policy.features if name not in offered]
    if missing:
        raise PolicyError(
            f"The policy needs features that this compiler does not offer: {', '.join(missing)}."
        )
    return [list(offered).index(name) for name in policy.features]
