"""The questions of one compile, in order, and how they were answered.

A *question* has one row of features for each candidate: one for a threshold (a call site, say),
several for a pick (the registers that could be freed). Rows stand question by question.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from nestor.errors import NestorError

F64 = npt.NDArray[np.float64]
I64 = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]


class LogError(NestorError):
    """A log is malformed or incomplete, or lacks a column."""


@dataclass(frozen=True)
class Trajectory:
    """All decisions of one unit's compile, in order."""

    features: tuple[str, ...]
    """Names of the features, in the compiler's order."""
    decisions: npt.NDArray[Any]
    """Structured array ``[questions]``: the columns ``answer``, ``logit`` and ``log_probability``,
    the default heuristic's answer under ``default_column``, and the problem's own columns. Of a
    problem with one row a question, the features too."""
    default_column: str
    """The column of ``decisions`` that holds the default heuristic's answer."""
    candidates: npt.NDArray[Any] | None = None
    """Structured array of the features ``[rows]``; None where each question has one row, which
    is then in ``decisions``."""
    question: I64 | None = None
    """The question of each row, non-decreasing ``[rows]``; None with ``candidates``."""
    names: Mapping[int, str] = field(default_factory=dict)
    """Names of functions by their 64-bit id; empty unless they were asked for."""
    facts: Mapping[str, int] = field(default_factory=dict)
    """What the log says of the unit as a whole, by name."""

    def __len__(self) -> int:
        """How many questions there are."""
        return len(self.decisions)

    @cached_property
    def questions(self) -> I64:
        """The question of each row, ``[rows]``."""
        return np.arange(len(self.decisions)) if self.question is None else self.question

    @cached_property
    def default(self) -> npt.NDArray[Any]:
        """The default heuristic's answer to each question, ``[questions]``."""
        return np.asarray(self.decisions[self.default_column])

    @cached_property
    def answer(self) -> npt.NDArray[Any]:
        """The answer that was given to each question, ``[questions]``."""
        return np.asarray(self.decisions["answer"])

    @cached_property
    def by_policy(self) -> Bools:
        """Which questions the policy answered, ``[questions]``; the default answers the others."""
        decisions = self.decisions
        return np.asarray((decisions["logit"] != 0) | (decisions["log_probability"] != 0))

    def rows(self, names: Sequence[str]) -> F64:
        """Return the features ``names`` of every row, ``[rows, len(names)]``.

        :raises LogError: if the log lacks one of them.
        """
        return _columns(self.decisions if self.candidates is None else self.candidates, names)

    def columns(self, names: Sequence[str]) -> F64:
        """Return the columns ``names`` of every decision, ``[questions, len(names)]``.

        :raises LogError: if the log lacks one of them.
        """
        return _columns(self.decisions, names)


def _columns(records: npt.NDArray[Any], names: Sequence[str]) -> F64:
    missing = [name for name in names if name not in (records.dtype.names or ())]
    if missing:
        raise LogError(f"The log has no feature {', '.join(missing)}.")
    if not names:
        return np.empty((len(records), 0))
    return np.stack([records[name].astype(np.float64) for name in names], axis=1)
