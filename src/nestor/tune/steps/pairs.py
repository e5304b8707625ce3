"""Pairs of moves, where none of two pays alone: what the two were found to do says which to try.

Two moves are neighbours if their questions are about a common function: only then can they do
together what neither does alone.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from nestor.tune.moves import Candidate, Move
from nestor.tune.state import Tried

_NEIGHBOURS: Final = 24
"""Moves about one function that are paired with each other, at most; those that cost least."""

_LEAST_DISTANCE: Final = 0.1
"""Of a pair: it comes after single moves that were never tried."""


def pairs(
    candidates: Iterable[Candidate], tried: Mapping[int, Tried], scale: float
) -> list[Candidate]:
    """Return the pairs of neighbours that were both tried alone as things are, and did not pay.

    :param scale: the loss of both together that makes a distance of 1.
    """
    losses: dict[int, float] = {}
    by_function: dict[int, list[Candidate]] = defaultdict(list)
    for candidate in candidates:
        found = tried.get(candidate.move.identity)
        if candidate.move.part is not None or len(candidate.move.questions) != 1 or found is None:
            continue
        if found.change is None or found.context != candidate.context:
            continue
        losses[candidate.move.identity] = found.change
        for function in candidate.near:
            by_function[function].append(candidate)
    joined: dict[tuple[int, int], Candidate] = {}
    for function in sorted(by_function):
        near = sorted(by_function[function], key=lambda c: losses[c.move.identity])[:_NEIGHBOURS]
        for number, one in enumerate(near):
            for other in near[:number]:
                first, second = sorted((one, other), key=lambda c: c.move.identity)
                key = first.move.identity, second.move.identity
                if key not in joined:
                    lost = losses[key[0]] + losses[key[1]]
                    joined[key] = _join((first, second), lost, scale)
    return list(joined.values())


def _join(both: Sequence[Candidate], lost: float, scale: float) -> Candidate:
    first, second = both
    move = Move(
        first.move.overrides + second.move.overrides,
        first.move.questions + second.move.questions,
        first.move.clears + second.move.clears,
    )
    return Candidate(
        move,
        first.claims | second.claims,
        max(_LEAST_DISTANCE, lost / scale),
        first.context ^ (second.context * 3 & (1 << 64) - 1),
        first.near | second.near,
        units=first.units | second.units,
        found=lost,
    )
