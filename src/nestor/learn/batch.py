"""What an update learns from: the questions of some compiles, their actions and their credit.

Rows of features stand question by question. A question has one row under the rules ``threshold``
and ``value``, and one per candidate under ``pick``; an action is what the rule of that name says.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from nestor.policy.questions import first_rows
from nestor.policy.rule import PICK, Actions, Rule

F64 = npt.NDArray[np.float64]
I64 = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Examples:
    """Questions with the actions that are to be imitated."""

    x: F64
    """Features, ``[rows, features]``."""
    question: I64
    """The question of each row, ``[rows]``: from 0, rows of a question together."""
    action: Actions
    """``[questions]``"""

    def select(self, chosen: I64) -> "Examples":
        """Return the chosen questions in their order."""
        rows, question = rows_of(self.question, chosen)
        return Examples(self.x[rows], question, self.action[chosen])


@dataclass(frozen=True)
class Batch:
    """Questions of all episodes one after the other, each episode's in order.

    An episode is one compile of one unit; one that failed is not here. A unit is named by its
    place in the reference.
    """

    x: F64
    """Features, ``[rows, features]``."""
    question: I64
    """The question of each row, ``[rows]``: from 0, rows of a question together."""
    action: Actions
    """The policy's actions, ``[questions]``."""
    log_probability: F64
    """Natural logarithm of each action's probability when it was sampled, ``[questions]``."""
    episode: I64
    """The place of its episode below, ``[questions]``."""
    change: F64
    """Score of the parts that each decision can affect minus that of stock, ``[questions]``."""
    share: F64
    """What of that is put down to the decision (:class:`nestor.problem.problem.Credit`),
    ``[questions]``."""
    unit: I64
    """The unit of each episode, ``[episodes]``."""
    total: F64
    """The score of each episode's unit, ``[episodes]``; lower is better."""
    stock: F64
    """The same under the stock compiler, ``[episodes]``."""

    def __len__(self) -> int:
        """How many questions there are."""
        return len(self.action)

    @property
    def last(self) -> Bools:
        """Which questions end an episode, ``[questions]``."""
        return np.append(self.episode[1:] != self.episode[:-1], True)[: len(self.episode)]

    @property
    def relative_change(self) -> float:
        """The change of the sum of all scores against stock; 0 for an empty batch."""
        return float(self.total.sum() / self.stock.sum() - 1) if len(self.stock) else 0.0

    @property
    def acted_pct(self) -> float:
        """Per cent of the actions that are not 0: under a threshold, those that act."""
        return 100 * float((self.action != 0).mean()) if len(self) else 0.0


def rows_of(question: I64, chosen: I64) -> tuple[I64, I64]:
    """Return the rows of the chosen questions, and the place in ``chosen`` of each row's question.

    :param question: the question of each row, ``[rows]``.
    :param chosen: questions in any order; one may occur several times.
    :return: both ``[rows of the chosen questions]``; the second numbers the questions from 0.
    """
    first = first_rows(question)
    count = np.diff(first, append=len(question))[chosen]
    place = np.repeat(np.arange(len(chosen)), count)
    within = np.arange(len(place)) - np.repeat(np.cumsum(count) - count, count)
    return first[chosen][place] + within, place


def chosen_rows(rule: Rule, question: I64, action: Actions) -> I64:
    """Return the row that each action chose, ``[questions]``: the only one, or one of many."""
    first = first_rows(question)
    return first + action.astype(np.int64) if rule == PICK else first
