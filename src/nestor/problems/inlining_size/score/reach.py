"""Which functions' bytes a change of answers can reach, from the trajectories of builds.

A function that was inlined is in its caller, in the callers into which that was inlined, and so on.
"""

from collections import defaultdict
from collections.abc import Mapping
from itertools import chain

import numpy as np

from nestor.problem.trajectory import Trajectory
from nestor.problems.inlining_size.log import INLINED


class Reach:
    """The functions that hold a copy of each function, by the 64-bit ids of the log."""

    def __init__(self, *builds: Mapping[str, Trajectory]):
        """Read what was inlined in ``builds``, each the trajectories by module."""
        self._into: dict[int, set[int]] = defaultdict(set)
        """The functions into which a function was inlined."""
        for trajectory in chain.from_iterable(build.values() for build in builds):
            records = trajectory.decisions
            inlined = records[np.isin(records["effect"], INLINED)]
            pairs = zip(
                inlined["caller"].view("<u8").tolist(),
                inlined["callee"].view("<u8").tolist(),
                strict=True,
            )
            for caller, callee in pairs:
                self._into[callee].add(caller)
        self._above: dict[int, frozenset[int]] = {}

    def above(self, function: int) -> frozenset[int]:
        """Return ``function`` and all functions that hold a copy of it."""
        if function not in self._above:
            seen, todo = {function}, [function]
            while todo:
                for caller in self._into.get(todo.pop(), ()):
                    if caller not in seen:
                        seen.add(caller)
                        todo.append(caller)
            self._above[function] = frozenset(seen)
        return self._above[function]
