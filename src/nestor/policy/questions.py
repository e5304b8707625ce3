"""Rows grouped into questions: one result per question, by operations on whole arrays.

``question`` int64 ``[rows]`` is the number of the question to which each row belongs.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from torch import Tensor

F64 = npt.NDArray[np.float64]
I64 = npt.NDArray[np.int64]

_GREATEST: Final = float(np.finfo(np.float64).max)


def first_rows(question: I64) -> I64:
    """Return the index of the first row of each question, int64 ``[questions]``.

    :raises ValueError: if ``question`` does not count up from 0 in steps of 0 or 1.
    """
    steps = np.diff(question, prepend=-1)
    if question.ndim != 1 or (len(steps) and (steps[0] != 1 or steps.min() < 0 or steps.max() > 1)):
        raise ValueError("the questions must be numbered from 0, and their rows stand together")
    return np.flatnonzero(steps == 1)


def reduce(operation: np.ufunc, values: npt.NDArray[Any], first: I64) -> npt.NDArray[Any]:
    """Return ``operation`` over the values of each question, ``[questions]``.

    :param values: ``[rows]``
    :param first: first row of each question, ``[questions]``.
    """
    if not first.size:
        return values[:0]
    result: npt.NDArray[Any] = operation.reduceat(values, first)
    return result


@dataclass(frozen=True)
class Rows:
    """A batch with each question's greatest logit moved to 0."""

    shifted: F64
    """Logit minus the greatest of the question, ``[rows]``; from -inf to 0."""
    first: I64
    """First row of each question, ``[questions]``."""
    count: I64
    """Rows of each question, ``[questions]``."""

    @staticmethod
    def of(logits: F64, question: I64) -> "Rows":
        """Group ``logits`` ``[rows]``; one that is not a number counts as minus infinity.

        In a question of nothing but those the first row counts as 0, so that it is the only choice.

        :raises ValueError: if the two arrays do not fit together.
        """
        first = first_rows(question)
        if logits.shape != question.shape:
            raise ValueError(f"{logits.shape} logits for {question.shape} rows")
        count = np.diff(first, append=len(question))
        # Infinity less infinity is not a number: the greatest finite one stands for it.
        scores = np.minimum(np.where(np.isnan(logits), -np.inf, logits), _GREATEST)
        hopeless = reduce(np.maximum, scores, first) == -np.inf
        scores[first[hopeless]] = 0.0
        greatest = reduce(np.maximum, scores, first)
        with np.errstate(over="ignore"):
            shifted = scores - np.repeat(greatest, count)
        return Rows(shifted, first, count)

    def weights(self, temperature: float) -> F64:
        """Return each row's probability relative to that of its question's greatest, ``[rows]``."""
        with np.errstate(over="ignore", under="ignore"):
            result: F64 = np.exp(self.shifted / temperature)
        return result

    def running_sums(self, weights: F64) -> F64:
        """Return the sum of ``weights`` from the question's first row to each row, ``[rows]``.

        Added one row after the other, as in C++; all questions of one length at once.
        """
        result = np.empty_like(weights)
        for length in np.unique(self.count):
            rows = self.first[self.count == length][:, None] + np.arange(length)
            result[rows] = np.cumsum(weights[rows], axis=1)
        return result


def torch_softmax(logits: "Tensor", question: "Tensor") -> "tuple[Tensor, Tensor, Tensor]":
    """Return the same as :class:`Rows` with a gradient, and the sum of each question's weights.

    :return: ``shifted`` ``[rows]``, ``first`` ``[questions]`` and the sums of exp(shifted),
        ``[questions]``.
    """
    import torch

    count = torch.bincount(question)
    first = count.cumsum(0) - count
    scores = torch.where(logits.isnan(), -torch.inf, logits).clamp(
        max=torch.finfo(logits.dtype).max
    )
    none = torch.full(count.shape, -torch.inf, dtype=scores.dtype, device=scores.device)
    greatest = none.scatter_reduce(0, question, scores.detach(), "amax")
    hopeless = first[greatest.isinf()]
    scores = scores.index_fill(0, hopeless, 0.0)
    greatest = torch.where(greatest.isinf(), 0.0, greatest)
    shifted = scores - greatest[question]
    total = torch.zeros_like(greatest).index_add(0, question, shifted.exp())
    return shifted, first, total
