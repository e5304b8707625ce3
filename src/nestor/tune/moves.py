"""Moves: what a search may change, and which functions' bytes a change can reach.

A *move* answers one site, or all sites of one callee, the other way. It changes the caller, every
function into which the caller is inlined, and perhaps the callee, which may lose its last use: the
move's *reach*. Moves whose reaches are disjoint can be tried in one compile and paid apart.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np
import numpy.typing as npt

from nestor.compiler.trajectory_log import Trajectory
from nestor.policy.overrides import Key

INLINED = (1, 2)
FAILED = 3
"""Values of the log's ``effect``."""

FAR_FROM_DEFAULT = 160
"""A site of more ``cost_estimate`` than this is hardly ever worth inlining for size."""


@dataclass(frozen=True)
class Site:
    """One call site of the program as a build saw it; copies in COMDAT functions are one site."""

    key: int
    caller: int
    callee: int
    answer: bool
    default: bool
    cost: int
    logit: float
    row: tuple[str, int]
    """Module and row of its features in the trajectory."""


@dataclass(frozen=True)
class Move:
    """Give ``answer`` at ``sites``, which now answer otherwise."""

    key: Key
    answer: bool
    sites: tuple[Site, ...]


def sites_of(trajectories: Mapping[str, Trajectory]) -> list[Site]:
    """Return every site that could be answered either way, each once, in a fixed order."""
    found: dict[int, Site] = {}
    for module, trajectory in trajectories.items():
        r = trajectory.records
        columns = (
            r["site"].view("<u8"), r["caller"].view("<u8"), r["callee"].view("<u8"),
            r["answer"] > 0, r["inlining_default"] > 0, r["cost_estimate"],
            r["logit"], r["effect"],
        )  # fmt: skip
        rows = zip(*(column.tolist() for column in columns), strict=True)
        for row, (key, caller, callee, answer, default, cost, logit, effect) in enumerate(rows):
            if effect != FAILED and key not in found:
                where = (module, row)
                found[key] = Site(key, caller, callee, answer, default, cost, logit, where)
    return list(found.values())


def pins_of(trajectories: Mapping[str, Trajectory]) -> dict[Key, bool]:
    """Return the answer of every site whose copies in all modules agree."""
    answers: dict[int, set[bool]] = defaultdict(set)
    for trajectory in trajectories.values():
        r = trajectory.records[trajectory.records["effect"] != FAILED]
        decided = (r["answer"] > 0).tolist()
        for key, answer in zip(r["site"].view("<u8").tolist(), decided, strict=True):
            answers[key].add(answer)
    return {Key("site", key): min(both) for key, both in answers.items() if len(both) == 1}


def site_moves(sites: Iterable[Site]) -> list[Move]:
    """Return the moves that turn one site around."""
    return [
        Move(Key("site", site.key), not site.answer, (site,))
        for site in sites
        if site.answer or site.cost <= FAR_FROM_DEFAULT
    ]


def callee_moves(sites: Iterable[Site]) -> list[Move]:
    """Return the moves that give one answer to all sites of a callee."""
    by_callee: dict[int, list[Site]] = defaultdict(list)
    for site in sites:
        by_callee[site.callee].append(site)
    moves = []
    for callee, group in by_callee.items():
        typical = sorted(site.cost for site in group)[len(group) // 2]
        for answer in (True, False):
            changed = tuple(site for site in group if site.answer != answer)
            if not changed:
                continue
            # Many copies of something large never pay; a single one may save its function.
            if answer and (typical > 250 or (len(group) > 40 and typical > 20)):
                continue
            moves.append(Move(Key("callee", callee), answer, changed))
    return moves


class Reach:
    """Which functions a move can change, from the trajectories of builds before and after."""

    def __init__(self, *builds: Mapping[str, Trajectory]):
        self._into: dict[int, set[int]] = defaultdict(set)
        """The functions into which a function was inlined."""
        for trajectory in chain.from_iterable(build.values() for build in builds):
            records = trajectory.records
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

    def of(self, move: Move) -> frozenset[int]:
        """Return the functions whose bytes ``move`` can change."""
        callers = {site.caller for site in move.sites}
        return frozenset({s.callee for s in move.sites}.union(*(self.above(c) for c in callers)))


def features(
    trajectories: Mapping[str, Trajectory], sites: Sequence[Site], names: Sequence[str]
) -> npt.NDArray[np.float64]:
    """Return the features ``names`` of ``sites`` as f64 ``[sites, names]``."""
    rows: dict[str, list[tuple[int, int]]] = defaultdict(list)
    for index, site in enumerate(sites):
        rows[site.row[0]].append((index, site.row[1]))
    result = np.empty((len(sites), len(names)))
    for module, pairs in rows.items():
        where, which = zip(*pairs, strict=True)
        records = trajectories[module].records[list(which)]
        for column, name in enumerate(names):
            result[list(where), column] = records[name]
    return result
