"""What of a module's change in bytes is put down to each of its call sites.

A decision can change its caller, every function that holds a copy of the caller, and the callee if
that appears or disappears. What lies beyond does not depend on its answer, so leaving it out
leaves a policy's gradient where it was and takes the noise of the decisions elsewhere away. The
*share* divides what changed equally among those decisions in reach of it that left the default; a
decision that did not has none: its function changed because of others.
"""

from collections import Counter
from collections.abc import Mapping

import numpy as np
import xxhash

from nestor.problem.score import Credit
from nestor.problem.trajectory import Trajectory
from nestor.problems.inlining_size.log import DEFAULT
from nestor.problems.inlining_size.score.reach import Reach

COLUMNS = ("effect", "caller", "callee")
"""What is read of a trajectory, besides the answers."""

Compile = tuple[Trajectory, Mapping[str, float]]
"""The trajectory and the bytes by function's name of one compile of a module."""


def credit(before: Compile, after: Compile) -> Credit:
    """Return the credit of the decisions of ``after`` against ``before``, in bytes."""
    changed, ended = _changes(before, after)
    records = after[0].decisions
    change, share = np.zeros(len(records)), np.zeros(len(records))
    if not changed:
        return Credit(change, share)
    reach = Reach({"before": before[0]}, {"after": after[0]})
    left = (records["answer"] > 0) != (records[DEFAULT] > 0)
    callers, callees = (records[name].view("<u8").tolist() for name in ("caller", "callee"))
    # Sorted: a sum of floats must not depend on the order of a set.
    above = {c: tuple(sorted(reach.above(c) & changed.keys())) for c in set(callers)}
    reached = [
        (*above[caller], callee)
        if callee in ended and callee not in above[caller]
        else above[caller]
        for caller, callee in zip(callers, callees, strict=True)
    ]
    sharers = Counter(f for row in np.flatnonzero(left) for f in reached[row])
    totals = {own: sum(changed[f] for f in own) for own in set(reached)}
    for row, own in enumerate(reached):
        change[row] = totals[own]
        if left[row]:
            share[row] = sum(changed[f] / sharers[f] for f in own)
    return Credit(change, share)


def _changes(before: Compile, after: Compile) -> tuple[dict[int, float], set[int]]:
    """Return the change of each function that changed, and those that only one compile has."""
    numbers = {name: key for log in (before[0], after[0]) for key, name in log.names.items()}
    changed: dict[int, float] = {}
    ended: set[int] = set()
    for name in sorted(before[1].keys() | after[1].keys()):
        difference = after[1].get(name, 0.0) - before[1].get(name, 0.0)
        if difference:
            number = numbers.get(name) or xxhash.xxh3_64_intdigest(name.encode())
            changed[number] = changed.get(number, 0.0) + difference
            if (name in before[1]) != (name in after[1]):
                ended.add(number)
    return changed, ended
