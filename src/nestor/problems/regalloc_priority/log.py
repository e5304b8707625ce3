"""Read the plugin's log of the priorities of live ranges (docs/reference/formats.md)."""

from typing import Any, Final

import numpy as np
import numpy.typing as npt

from nestor.problem.trajectory import Trajectory
from nestor.problems.regalloc_priority.features import DEFAULT, NAMES
from nestor.regalloc import question_log
from nestor.regalloc.credit import FUNCTION, QUESTION

PRIORITY: Final = "priority"
"""The column with the priority that the live range was given."""
STOCK_PRIORITY: Final = "priority_default"
"""The column with the stock priority."""

_COPIED: Final = ("answer", "logit", "log_probability")
_WHOLE: Final = ("overridden", STOCK_PRIORITY, PRIORITY, FUNCTION, QUESTION)


def parse(data: bytes, name: str = "log") -> Trajectory:
    """Parse the bytes of a log; ``name`` is used in errors.

    :raises LogError: if it is not a log, is malformed, or was cut short.
    """
    return question_log.parse(data, name, _trajectory)


def _trajectory(records: npt.NDArray[Any]) -> Trajectory:
    numbers = [(name, "<f8") for name in (*NAMES, DEFAULT, *_COPIED)]
    decisions = np.zeros(len(records), [*numbers, *((name, "<i8") for name in _WHOLE)])
    for name in (*NAMES, *_COPIED, *_WHOLE):
        decisions[name] = records[name]
    return Trajectory(NAMES, decisions, DEFAULT)
