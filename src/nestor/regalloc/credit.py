"""What of a module's change in cost is put down to each of its decisions.

A decision can only change the function in whose allocation it is taken. Where the log says what the
function would have cost with the default's answer to a question (a *label*), the *share* of that
decision is the difference. What else the function changed by is divided equally among those of its
other decisions that left the default; all others have no share.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

import numpy as np
import numpy.typing as npt

from nestor.problem.score import Credit
from nestor.problem.trajectory import F64, Trajectory
from nestor.regalloc.outcome import ModuleCost

FUNCTION: Final = "function"
"""The column with the 64-bit id of the function that is allocated."""

QUESTION: Final = "question"
"""The column with the question's number in its function, by which overrides name it."""

INDEX: Final = "index"
"""The column with a candidate as the compiler and overrides name it; absent where the answer is not
a candidate. The answer itself is a row: only candidates that may be chosen have one."""

LABEL: Final = "cost_beyond_default"
"""The column with what the question's answer costs more than the default's would, all else decided
alike; not a number where that was not tried. Absent from logs without trials."""

COLUMNS: Final = (FUNCTION,)
"""What is read of the default's trajectory, besides the answers."""

Compile = tuple[Trajectory, Mapping[str, float]]
"""The trajectory, with names, and the weighted cost by function's name of one compile."""


def credit(before: Compile, after: Compile) -> Credit:
    """Return the credit of the decisions of ``after`` against ``before``, in units of cost."""
    trajectory, parts = after
    functions, place = functions_of(trajectory)
    names = [trajectory.names.get(int(function), "") for function in functions]
    changed = np.array([parts.get(name, 0.0) - before[1].get(name, 0.0) for name in names])
    left = trajectory.answer != trajectory.default
    label = labels_of(trajectory)
    labelled = left & np.isfinite(label)
    shared = left & ~labelled
    own = np.where(labelled, label, 0.0)
    explained = np.bincount(place, weights=own, minlength=len(functions))
    sharers = np.bincount(place, weights=shared, minlength=len(functions))
    rest = (changed - explained) / np.maximum(1, sharers)
    return Credit(changed[place], np.where(shared, rest[place], own))


def functions_of(
    trajectory: Trajectory,
) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.intp]]:
    """Return the ids of the functions asked about, and the place in them of each question's.

    :return: ``[functions]`` and ``[questions]``.
    """
    ids = np.ascontiguousarray(trajectory.decisions[FUNCTION]).view("<u8")
    functions, place = np.unique(ids, return_inverse=True)
    return functions, place


def labels_of(trajectory: Trajectory) -> F64:
    """Return the labels, ``[questions]``; not a number where there is none."""
    decisions = trajectory.decisions
    if LABEL not in (decisions.dtype.names or ()):
        return np.full(len(decisions), np.nan)
    return np.asarray(decisions[LABEL], dtype=np.float64)


def with_weighted_labels(trajectory: Trajectory, outcome: ModuleCost) -> Trajectory:
    """Return ``trajectory`` with labels of one call made labels of all calls of each function."""
    if LABEL not in (trajectory.decisions.dtype.names or ()):
        return trajectory
    weight = {f.id: w for f, w in zip(outcome.functions, outcome.weights, strict=True)}
    functions, place = functions_of(trajectory)
    own = np.array([weight.get(int(function), 1.0) for function in functions])
    decisions = trajectory.decisions.copy()
    decisions[LABEL] *= own[place]
    return replace(trajectory, decisions=decisions)
