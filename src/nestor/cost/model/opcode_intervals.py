"""Intervals of blocks with opcodes that training lacks; ``held_out_opcodes`` finds them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from nestor.cost.core.simulator import F64

SHARES: Final = (0.0, 1 / 3, 1.0)
"""Groups of blocks: by the share of unknown instructions, above one edge and up to the next."""

Factors = tuple[float, float]
"""On the predicted cycles; 90 % of the opcodes held out lie between."""


@dataclass(frozen=True)
class OpcodeIntervals:
    """Factors by group of :data:`SHARES`; none if there were too few opcodes to say."""

    groups: tuple[Factors, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.groups)

    def factors(self, shares: F64) -> tuple[F64, F64]:
        """Return the factors for blocks by their share of unknown instructions ``[n]``."""
        numbers = np.clip(np.searchsorted(SHARES, shares, side="left") - 1, 0, len(SHARES) - 2)
        low, high = np.array(self.groups, dtype=np.float64).T
        return low[numbers], high[numbers]


def from_lists(groups: Sequence[Sequence[float]]) -> OpcodeIntervals:
    """Return what a model file holds.

    :raises ValueError: if the factors are none.
    """
    found = OpcodeIntervals(tuple((float(low), float(high)) for low, high in groups))
    good = all(0 < low < 1e9 and 0 < high < 1e9 for low, high in found.groups)
    if not good or len(found.groups) not in (0, len(SHARES) - 1):
        raise ValueError("intervals of unknown opcodes that do not fit")
    return found
