"""What combinations of answers will come to, from those that were tried: a sum of terms, learned.

Where a few questions are answered together, the problem says of each combination which terms it
adds up (an answer, a function that goes away) and what it believes that each is worth.
Combinations that were built correct these beliefs, by Bayesian linear regression, and the next to
be tried is the one that may be the best.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

Terms = Mapping[int, float]
"""What each term of a combination is believed to add to the score, by a number of the term."""

_DOUBT: Final = 0.5
"""How far a belief is off, typically, as a part of it."""
_LEAST_DOUBT: Final = 8.0
"""How far it is off at least, in units of the score."""
_NOISE: Final = 2.0
"""How far a sum of the right terms is off, in units of the score: bytes are padded."""
_ANY: Final = 1e4
"""How far off one may be about what is there without any term."""


@dataclass(frozen=True)
class Combination:
    """Some answers to the questions of one part of a program."""

    terms: Terms
    now: Terms
    """Of the answers as they are."""


def hopes(
    wanted: Sequence[Terms], seen: Sequence[tuple[Terms, float]], unit: float = 1.0
) -> npt.NDArray[np.float64]:
    """Return what ``wanted`` may come to if things go well: a standard deviation below the mean.

    :param seen: combinations of the same part, and what they came to, the whole of the part.
    :param unit: what of the score counts as a byte does.
    """
    believed: dict[int, float] = {}
    for terms in (*wanted, *(terms for terms, _ in seen)):
        believed |= terms
    column = {term: number + 1 for number, term in enumerate(sorted(believed))}

    def rows(of: Sequence[Terms]) -> npt.NDArray[np.float64]:
        found = np.zeros((len(of), len(column) + 1))
        found[:, 0] = 1.0
        for number, terms in enumerate(of):
            found[number, [column[term] for term in terms]] = 1.0
        return found

    mean = np.array([0.0, *(believed[term] for term in sorted(believed))])
    spread = np.maximum(_LEAST_DOUBT * unit, _DOUBT * np.abs(mean))
    spread[0] = _ANY * unit
    tried, hoped = rows([terms for terms, _ in seen]), rows(wanted)
    came_to = np.array([value for _, value in seen])
    cross = hoped * spread**2 @ tried.T
    own = tried * spread**2 @ tried.T + (_NOISE * unit) ** 2 * np.eye(len(tried))
    solved = np.linalg.solve(own, np.column_stack([came_to - tried @ mean, cross.T]))
    expected = hoped @ mean + cross @ solved[:, 0]
    variance = (hoped**2) @ spread**2 - np.einsum("ij,ji->i", cross, solved[:, 1:])
    return np.asarray(expected - np.sqrt(np.maximum(0.0, variance)), dtype=np.float64)
