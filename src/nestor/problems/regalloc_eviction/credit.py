"""What of a module's change in cost is put down to each of its decisions.

A decision can only change the function in whose allocation it is taken. The *share* divides what
the function changed by equally among those of its decisions that left the default; all others have
none.
"""

from collections import Counter
from collections.abc import Mapping

import numpy as np
import xxhash

from nestor.problem.problem import Credit
from nestor.problem.trajectory import Trajectory

FUNCTION = "function"
"""The column with the 64-bit id of the function that is allocated."""

COLUMNS = (FUNCTION,)
"""What is read of a trajectory, besides the answers."""

Compile = tuple[Trajectory, Mapping[str, float]]
"""The trajectory and the cost by function's name of one compile of a module."""


def function_id(name: str) -> int:
    """Return a function's id in logs: xxh3 of its symbol's name, as a signed 64-bit integer."""
    number = xxhash.xxh3_64_intdigest(name.encode())
    return number - (1 << 64) if number >= 1 << 63 else number


def credit(before: Compile, after: Compile) -> Credit:
    """Return the credit of the decisions of ``after`` against ``before``, in units of cost."""
    trajectory, parts = after
    names = before[1].keys() | parts.keys()
    changed = {function_id(name): parts.get(name, 0.0) - before[1].get(name, 0.0) for name in names}
    functions = trajectory.decisions[FUNCTION].tolist()
    left = trajectory.answer != trajectory.default
    sharers = Counter(f for f, is_left in zip(functions, left.tolist(), strict=True) if is_left)
    change = np.array([changed.get(function, 0.0) for function in functions])
    parted = np.array([max(1, sharers[function]) for function in functions])
    return Credit(change, np.where(left, change / parted, 0.0))
