"""A policy scores rows; a rule turns the rows of one question into an action.

A batch is ``logits`` f64 ``[rows]`` and ``question`` int64 ``[rows]``, the number of the question
to which each row belongs: it starts at 0, does not decrease and leaves no number out, so every
question has at least one row. A candidate that may not be chosen has no row.

========== ======================= ======================================================
rule       rows of a question      action
========== ======================= ======================================================
threshold  one                     1 with the probability sigmoid(logit / temperature)
pick       one or more             the number of a row, from 0, by softmax(logits / temperature)
value      one                     a number, normal around the logit; temperature is its deviation
========== ======================= ======================================================

The same rules in C++ are ``native/policy/Rule.cpp``. Both draw an action from a uniform number
(:func:`nestor.policy.draws.uniform`), so that a draw can be repeated.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Protocol

import numpy as np
import numpy.typing as npt

from nestor.errors import NestorError
from nestor.policy.draws import normal_quantile
from nestor.policy.draws import uniform as uniform
from nestor.policy.questions import Rows, first_rows, reduce, torch_softmax

if TYPE_CHECKING:
    from torch import Tensor

F64 = npt.NDArray[np.float64]
I64 = npt.NDArray[np.int64]
Actions = npt.NDArray[Any]
"""One action per question: int64, or f64 for the rule ``value``."""

_LOG_ROOT_TAU: Final = 0.5 * math.log(2 * math.pi)


class Rule(Protocol):
    """How the rows of a question become its action."""

    @property
    def name(self) -> str:
        """The word for the rule in policy files."""

    def greedy(self, logits: F64, question: I64) -> Actions:
        """Return the most probable action of each question, ``[questions]``."""

    def sample(self, logits: F64, question: I64, uniforms: F64, temperature: float) -> Actions:
        """Draw an action for each question, ``[questions]``.

        :param uniforms: ``[questions]``, each in [0, 1): where the distribution is cut.
        :param temperature: above 0; the lower, the closer to greedy.
        """

    def log_probability(
        self, logits: F64, question: I64, actions: Actions, temperature: float = 1.0
    ) -> F64:
        """Return the natural logarithm of the probability (value: density) of ``actions``."""

    def entropy(self, logits: F64, question: I64, temperature: float = 1.0) -> F64:
        """Return the entropy of each question's distribution in nats, f64 ``[questions]``."""

    def torch_log_probability(
        self, logits: "Tensor", question: "Tensor", actions: "Tensor"
    ) -> "Tensor":
        """Return `log_probability` at temperature 1 as a tensor with a gradient."""

    def torch_entropy(self, logits: "Tensor", question: "Tensor") -> "Tensor":
        """Return `entropy` at temperature 1 as a tensor with a gradient."""


@dataclass(frozen=True)
class Threshold:
    """Action 1 above the threshold of 0, else 0. A logit that is not a number gives 0."""

    name: str = "threshold"

    def probability(self, logits: F64, temperature: float = 1.0) -> F64:
        """Return the probability of action 1 for each logit."""
        _checked_temperature(temperature)
        with np.errstate(over="ignore"):
            result: F64 = 1.0 / (1.0 + np.exp(-logits / temperature))
        result[np.isnan(logits)] = 0.0
        return result

    def greedy(self, logits: F64, question: I64) -> Actions:
        """See :meth:`Rule.greedy`."""
        return (_single(logits, question) > 0).astype(np.int64)

    def sample(self, logits: F64, question: I64, uniforms: F64, temperature: float) -> Actions:
        """See :meth:`Rule.sample`."""
        probability = self.probability(_single(logits, question), temperature)
        return (_checked(uniforms, len(logits)) < probability).astype(np.int64)

    def log_probability(
        self, logits: F64, question: I64, actions: Actions, temperature: float = 1.0
    ) -> F64:
        """See :meth:`Rule.log_probability`.

        It is of the probabilities that `sample` has: -inf for what rounding keeps it from drawing.
        """
        positive = self.probability(_single(logits, question), temperature)
        with np.errstate(divide="ignore"):
            result: F64 = np.log(np.where(actions != 0, positive, 1.0 - positive))
        return result

    def entropy(self, logits: F64, question: I64, temperature: float = 1.0) -> F64:
        """See :meth:`Rule.entropy`."""
        positive = self.probability(_single(logits, question), temperature)
        return -(_times_log(positive) + _times_log(1.0 - positive))

    def torch_log_probability(
        self, logits: "Tensor", question: "Tensor", actions: "Tensor"
    ) -> "Tensor":
        """See :meth:`Rule.torch_log_probability`."""
        import torch

        return torch.nn.functional.logsigmoid(torch.where(actions.bool(), logits, -logits))

    def torch_entropy(self, logits: "Tensor", question: "Tensor") -> "Tensor":
        """See :meth:`Rule.torch_entropy`."""
        import torch

        return torch.nn.functional.softplus(logits) - logits * torch.sigmoid(logits)


@dataclass(frozen=True)
class Pick:
    """The number of the row with the greatest logit, the first of equals.

    A logit that is not a number counts as minus infinity; where all of a question's are, its first
    row is the only choice.
    """

    name: str = "pick"

    def greedy(self, logits: F64, question: I64) -> Actions:
        """See :meth:`Rule.greedy`."""
        rows = Rows.of(logits, question)
        place = np.arange(len(rows.shifted)) - np.repeat(rows.first, rows.count)
        # The greatest logit has been shifted to 0; all others lie below.
        wanted = np.where(rows.shifted == 0, place, len(place))
        return reduce(np.minimum, wanted, rows.first)

    def sample(self, logits: F64, question: I64, uniforms: F64, temperature: float) -> Actions:
        """See :meth:`Rule.sample`."""
        rows = Rows.of(logits, question)
        running = rows.running_sums(rows.weights(_checked_temperature(temperature)))
        last = rows.first + rows.count - 1
        cut = _checked(uniforms, len(rows.first)) * running[last]
        passed = running <= np.repeat(cut, rows.count)
        return reduce(np.add, passed.astype(np.int64), rows.first)

    def log_probability(
        self, logits: F64, question: I64, actions: Actions, temperature: float = 1.0
    ) -> F64:
        """See :meth:`Rule.log_probability`."""
        rows = Rows.of(logits, question)
        if ((actions < 0) | (actions >= rows.count)).any():
            raise ValueError("an action must be the number of a row of its question")
        total = reduce(np.add, rows.weights(_checked_temperature(temperature)), rows.first)
        with np.errstate(over="ignore"):
            result: F64 = rows.shifted[rows.first + actions] / temperature - np.log(total)
        return result

    def entropy(self, logits: F64, question: I64, temperature: float = 1.0) -> F64:
        """See :meth:`Rule.entropy`."""
        rows = Rows.of(logits, question)
        weights = rows.weights(_checked_temperature(temperature))
        total = reduce(np.add, weights, rows.first)
        return -reduce(np.add, _times_log(weights / np.repeat(total, rows.count)), rows.first)

    def torch_log_probability(
        self, logits: "Tensor", question: "Tensor", actions: "Tensor"
    ) -> "Tensor":
        """See :meth:`Rule.torch_log_probability`."""
        shifted, first, total = torch_softmax(logits, question)
        return shifted[first + actions.long()] - total.log()

    def torch_entropy(self, logits: "Tensor", question: "Tensor") -> "Tensor":
        """See :meth:`Rule.torch_entropy`."""
        import torch

        shifted, _, total = torch_softmax(logits, question)
        # A row of probability 0 adds nothing, and 0 times its infinity would not be a number.
        finite = torch.where(shifted.isinf(), 0.0, shifted)
        expected = torch.zeros_like(total).index_add(0, question, shifted.exp() * finite) / total
        return total.log() - expected


@dataclass(frozen=True)
class Value:
    """The logit itself; 0 where it is not finite."""

    name: str = "value"

    def greedy(self, logits: F64, question: I64) -> Actions:
        """See :meth:`Rule.greedy`."""
        own = _single(logits, question)
        return np.where(np.isfinite(own), own, 0.0)

    def sample(self, logits: F64, question: I64, uniforms: F64, temperature: float) -> Actions:
        """See :meth:`Rule.sample`."""
        _checked_temperature(temperature)
        quantiles = normal_quantile(_checked(uniforms, len(logits)))
        return self.greedy(logits, question) + temperature * quantiles

    def log_probability(
        self, logits: F64, question: I64, actions: Actions, temperature: float = 1.0
    ) -> F64:
        """See :meth:`Rule.log_probability`."""
        _checked_temperature(temperature)
        with np.errstate(over="ignore"):
            z = (actions - self.greedy(logits, question)) / temperature
            result: F64 = -0.5 * z * z - math.log(temperature) - _LOG_ROOT_TAU
        return result

    def entropy(self, logits: F64, question: I64, temperature: float = 1.0) -> F64:
        """See :meth:`Rule.entropy`."""
        _checked_temperature(temperature)
        each = 0.5 + _LOG_ROOT_TAU + math.log(temperature)
        return np.full(len(_single(logits, question)), each)

    def torch_log_probability(
        self, logits: "Tensor", question: "Tensor", actions: "Tensor"
    ) -> "Tensor":
        """See :meth:`Rule.torch_log_probability`."""
        import torch

        z = actions - torch.where(logits.isfinite(), logits, 0.0)
        return -0.5 * z * z - _LOG_ROOT_TAU

    def torch_entropy(self, logits: "Tensor", question: "Tensor") -> "Tensor":
        """See :meth:`Rule.torch_entropy`."""
        import torch

        return torch.full_like(logits, 0.5 + _LOG_ROOT_TAU)


THRESHOLD: Final = Threshold()
PICK: Final = Pick()
VALUE: Final = Value()
RULES: Final[Mapping[str, Rule]] = {rule.name: rule for rule in (THRESHOLD, PICK, VALUE)}


def rule_named(name: str) -> Rule:
    """Return the rule with this name.

    :raises NestorError: if there is none.
    """
    if name not in RULES:
        raise NestorError(f"There is no rule {name!r}; the rules are {', '.join(RULES)}.")
    return RULES[name]


def _single(logits: F64, question: I64) -> F64:
    if logits.shape != question.shape or len(first_rows(question)) != len(logits):
        raise ValueError("each question must have exactly one row under this rule")
    return logits


def _checked(uniforms: F64, questions: int) -> F64:
    if uniforms.shape != (questions,):
        raise ValueError(f"{questions} questions need as many uniform numbers")
    if not ((uniforms >= 0) & (uniforms < 1)).all():
        raise ValueError("uniform numbers must be at least 0 and below 1")
    return uniforms


def _checked_temperature(temperature: float) -> float:
    if not (temperature > 0 and math.isfinite(temperature)):
        raise ValueError(f"the temperature must be positive and finite, not {temperature}")
    return temperature


def _times_log(probability: F64) -> F64:
    """Return p · log p; 0 for p = 0."""
    result: F64 = probability * np.log(np.where(probability > 0, probability, 1.0))
    return result
