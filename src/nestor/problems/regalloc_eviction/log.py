"""Read the plugin's log of questions about eviction (docs/reference/formats.md).

It is an LLVM training log: LLVM's own tensors, then the plugin's columns. A question takes 3.5 KB,
so all questions of a log are made rows of features at once.
"""

from typing import Any, Final

import numpy as np
import numpy.typing as npt

from nestor.problem.trajectory import Trajectory
from nestor.problems.regalloc_eviction.question import CANDIDATES, DEFAULT, Layout, Questions
from nestor.regalloc import question_log
from nestor.regalloc.credit import FUNCTION, INDEX, LABEL, QUESTION

ANSWER: Final = "index_to_evict"
COSTS: Final = "cost_of_candidate"
"""What one call of the function would have cost with each candidate, ``[33]``; not a number where
it was not tried."""

_COPIED: Final = ("logit", "log_probability", "overridden", FUNCTION, QUESTION)
_OWN: Final = (ANSWER, DEFAULT, COSTS, *_COPIED)

_DECISIONS: Final = (
    (DEFAULT, "<i8"),
    ("answer", "<i8"),
    ("logit", "<f8"),
    ("log_probability", "<f8"),
    ("overridden", "<i8"),
    (INDEX, "<i8"),
    ("default_index", "<i8"),
    ("rows", "<i8"),
    (FUNCTION, "<i8"),
    (QUESTION, "<i8"),
)
"""Columns of a decision: answers are rows within the question, indices the compiler's."""


def parse(data: bytes, name: str = "log") -> Trajectory:
    """Parse the bytes of a log; ``name`` is used in errors.

    :raises LogError: if it is not a log, is malformed, or was cut short.
    """
    return question_log.parse(data, name, _trajectory)


def _trajectory(records: npt.NDArray[Any]) -> Trajectory:
    fields = [(name, records.dtype[name].shape) for name in records.dtype.names or ()]
    layout = Layout.of(field for field in fields if field[0] not in _OWN)
    questions = Questions(layout, records)
    chosen, preferred = records[ANSWER], records[DEFAULT]
    for candidates in (chosen, preferred):
        if ((candidates < 0) | (candidates >= CANDIDATES)).any():
            raise ValueError("an answer is no candidate")
        if not questions.mask[np.arange(len(records)), candidates].all():
            raise ValueError("an answer is a candidate that may not be chosen")
    default = questions.row_of(preferred)
    columns = questions.columns()
    columns |= questions.default_columns(columns, default)
    rows = np.empty(len(questions.question), [(name, "<f8") for name in columns])
    for name, values in columns.items():
        rows[name] = values
    labelled = COSTS in (records.dtype.names or ())
    label = [(LABEL, "<f8"), (COSTS, "<f8", (CANDIDATES,))] if labelled else []
    decisions = np.empty(len(records), [*_DECISIONS, *label])
    for name in _COPIED:
        decisions[name] = records[name]
    decisions[DEFAULT], decisions["default_index"] = default, preferred
    decisions["answer"], decisions[INDEX] = questions.row_of(chosen), chosen
    decisions["rows"] = questions.counts
    if labelled:
        costs, every = records[COSTS], np.arange(len(records))
        decisions[LABEL] = costs[every, chosen] - costs[every, preferred]
        decisions[COSTS] = costs
    return Trajectory(tuple(columns), decisions, DEFAULT, rows, questions.question)
