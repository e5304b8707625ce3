"""In which order the moves of a step are tried, and which of a build's moves are worth compiling.

Where the problem knows what moves may be expected to save, that is the order; otherwise groups of
moves take turns, and in a group the moves come first that are least far from what is there.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

from nestor.tune.moves import Candidate, Candidates
from nestor.tune.state import Tried
from nestor.tune.steps.choice import excluding
from nestor.tune.steps.estimates import Terms, hopes
from nestor.tune.steps.settings import OrderSettings

_MOST_TIMES: Final = 3
"""A move whose effect stays unclear is tried so often as long as nothing changes around it."""

_FARTHEST: Final = 1.5
"""A distance beyond this counts as this."""


class Order:
    """The order of the moves on one verified build."""

    def __init__(
        self,
        candidates: Candidates,
        expected: npt.NDArray[np.float64] | None,
        total: Callable[[frozenset[int]], float],
        settings: OrderSettings,
        rng: np.random.Generator,
    ):
        """Prepare to order ``candidates``.

        :param expected: what each of them may be expected to save; None if unknown.
        :param total: what some functions come to in the verified build.
        """
        self._candidates = candidates
        self._total, self._settings, self._rng = total, settings, rng
        moves = [candidate.move.identity for candidate in candidates.every]
        self._savings: Mapping[int, float] = (
            {} if expected is None else dict(zip(moves, expected.tolist(), strict=True))
        )
        self._parts = _by_part(candidates.every)

    def open(
        self, turn: int, tried: Mapping[int, Tried], frees_first: bool = False
    ) -> Iterator[Candidate]:
        """Yield the moves of which something new may come, the most promising first.

        :param turn: says which group of moves comes first where savings are unknown.
        :param tried: what moves were found to do, by the move's identity.
        :param frees_first: whether those come before all others that free what has a limit.
        """
        groups = self._groups(turn)
        if frees_first:
            frees = [candidate for group in groups for candidate in group if candidate.frees]
            groups = [frees, *([c for c in group if not c.frees] for group in groups)]
        for group in groups:
            yield from self._sorted(group, tried)

    def besides(self, tried: Mapping[int, Tried]) -> Iterator[Candidate]:
        """Yield those for which alone no unit is worth compiling, those of least distance first."""
        own = [candidate for candidate in self._candidates.besides if _is_open(candidate, tried)]
        yield from sorted(own, key=lambda candidate: candidate.distance)

    def _sorted(
        self, group: Sequence[Candidate], tried: Mapping[int, Tried]
    ) -> Iterator[Candidate]:
        own = [candidate for candidate in group if _is_open(candidate, tried)]
        for index in np.argsort(self._ranks(own, tried), kind="stable"):
            yield own[index]

    def worth_compiling(
        self, chosen: Sequence[Candidate], frees_first: bool = False
    ) -> list[Candidate]:
        """Return those of ``chosen`` in the units that have most of what all of them may save.

        A build costs a compile of every unit in which it tries something, however little that is.

        :param frees_first: see :meth:`open`; the units are then those of what frees.
        """
        if not self._savings:
            return list(chosen)
        by_unit: dict[str, float] = defaultdict(float)
        frees = [candidate for candidate in chosen if candidate.frees] if frees_first else []
        for candidate in frees or chosen:
            for unit in candidate.units:
                by_unit[unit] += self._savings[candidate.move.identity] / len(candidate.units)
        wanted: set[str] = set()
        left = self._settings.covered * sum(by_unit.values())
        for unit in sorted(by_unit, key=lambda unit: (-by_unit[unit], unit)):
            if left <= 0:
                break
            wanted.add(unit)
            left -= by_unit[unit]
        return [candidate for candidate in chosen if candidate.units <= wanted]

    def _groups(self, turn: int) -> list[Sequence[Candidate]]:
        """Return the groups in the order in which to draw from them."""
        if self._savings:
            return [self._candidates.every]
        first = turn % max(1, len(self._candidates.turns))
        turns = (*self._candidates.turns[first:], *self._candidates.turns[:first])
        return [*self._candidates.first, *turns, self._candidates.last]

    def _ranks(
        self, group: Sequence[Candidate], tried: Mapping[int, Tried]
    ) -> npt.NDArray[np.float64]:
        before = [(candidate, tried.get(candidate.move.identity)) for candidate in group]
        drawn = self._settings.chance * self._rng.random(len(group))
        if self._savings:
            savings = np.array([self._savings[c.move.identity] for c in group], float)
            size = np.array([excluding(len(candidate.claims)) for candidate in group])
            # What came of a try among other answers is in the savings.
            again = [
                found.times if found and found.context == c.context else 0 for c, found in before
            ]
            ranks = -savings / size * (1.0 - drawn) / (1.0 + np.array(again, float)) ** 2
        else:
            times = np.array([0 if found is None else found.times for _, found in before], float)
            distance = np.array([candidate.distance for candidate in group], float)
            ranks = times + drawn + np.minimum(_FARTHEST, distance)
        # Moves about one part are compared with each other only: no other move reaches into it.
        for part, numbers in _by_part(group).items():
            ranks[numbers] = self._hopes(part, [group[number] for number in numbers], tried)
        return np.asarray(ranks, dtype=np.float64)

    def _hopes(
        self, part: int, own: Sequence[Candidate], tried: Mapping[int, Tried]
    ) -> npt.NDArray[np.float64]:
        """Return what combinations of answers of one part may come to, by those that were tried."""
        wanted = [c.combination.terms for c in own if c.combination is not None]
        seen: list[tuple[Terms, float]] = []
        for number in self._parts[part]:
            candidate = self._candidates.every[number]
            found = tried.get(candidate.move.identity)
            if candidate.combination is None:
                continue
            if not seen:
                seen.append((candidate.combination.now, self._total(candidate.claims)))
            if found is not None and found.context == candidate.context and found.total is not None:
                seen.append((candidate.combination.terms, found.total))
        return hopes(wanted, seen, self._settings.unit)


def _is_open(candidate: Candidate, tried: Mapping[int, Tried]) -> bool:
    """Tell whether something new may come of trying a move."""
    found = tried.get(candidate.move.identity)
    if found is None or found.context != candidate.context:
        return True
    return found.change is None and found.times < _MOST_TIMES


def _by_part(group: Sequence[Candidate]) -> Mapping[int, Sequence[int]]:
    """Return the places in ``group`` of the combinations of each part."""
    found: dict[int, list[int]] = defaultdict(list)
    for number, candidate in enumerate(group):
        if candidate.move.part is not None and candidate.combination is not None:
            found[candidate.move.part].append(number)
    return found
