"""Credit by function: which of many moves, tried in one build, saved what.

What the score has of every function before and after is compared; what changed in the reach of a
move is put down to it. Moves whose reaches met after all share their credit; and where something
changed that none reaches, those share it that may have changed it further down.
"""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Share:
    """Moves that cannot be told apart, and what they changed together."""

    moves: tuple[int, ...]
    """Indices of the moves."""
    functions: frozenset[int]
    """The functions that changed in their reach."""
    change: float
    """Of the score; negative is a saving."""


@dataclass(frozen=True)
class Credit:
    """The changes of one build, put down to moves."""

    shares: tuple[Share, ...]
    """Each move is in one share."""
    unexplained: frozenset[int]
    """Functions that changed outside the reach of every move."""


def changes(before: Mapping[int, float], after: Mapping[int, float]) -> dict[int, float]:
    """Return the change of every function that changed, by its id."""
    found = {f: after.get(f, 0) - before.get(f, 0) for f in before.keys() | after.keys()}
    return {function: change for function, change in found.items() if change}


def assign(
    reaches: Sequence[frozenset[int]],
    changed: Mapping[int, float],
    indirect: Callable[[int, frozenset[int]], Mapping[int, int]] = lambda move, functions: {},
) -> Credit:
    """Put ``changed`` (by function) down to the moves with these reaches.

    :param indirect: says which of some functions that no move reaches a move may have changed, and
        from how far; those that are nearest have done so.
    """
    credit = _assign(reaches, changed)
    if not credit.unexplained:
        return credit
    distances = [indirect(move, credit.unexplained) for move in range(len(reaches))]
    nearest: dict[int, int] = {}
    for own in distances:
        for function, distance in own.items():
            nearest[function] = min(distance, nearest.get(function, distance))
    if not nearest:
        return credit
    further = [{f for f, distance in own.items() if distance == nearest[f]} for own in distances]
    return _assign([own | more for own, more in zip(reaches, further, strict=True)], changed)


def _assign(reaches: Sequence[frozenset[int]], changed: Mapping[int, float]) -> Credit:
    owner = list(range(len(reaches)))

    def find(move: int) -> int:
        while owner[move] != move:
            owner[move] = owner[owner[move]]
            move = owner[move]
        return move

    claimed: dict[int, int] = {}
    for move, reach in enumerate(reaches):
        # The smaller side is walked: a reach may be large, and so may the list of changes.
        for function in changed.keys() & reach:
            if function in claimed:
                owner[find(move)] = find(claimed[function])
            else:
                claimed[function] = move
    members: dict[int, list[int]] = defaultdict(list)
    for move in range(len(reaches)):
        members[find(move)].append(move)
    functions: dict[int, set[int]] = defaultdict(set)
    for function, move in claimed.items():
        functions[find(move)].add(function)
    shares = tuple(
        Share(
            tuple(moves),
            frozenset(functions[root]),
            sum(changed[function] for function in sorted(functions[root])),
        )
        for root, moves in sorted(members.items())
    )
    return Credit(shares, frozenset(changed.keys() - claimed.keys()))
