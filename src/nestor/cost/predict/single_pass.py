"""Cycles of one pass through a block that other code runs before, not the same block."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nestor.cost.contract import CostModel
from nestor.cost.isa.decoding import DecodeError
from nestor.cost.isa.recurrence import without_recurrence
from nestor.cost.predict.answers import answers

F64 = NDArray[np.float64]


@dataclass(frozen=True)
class PassCycles:
    """Cycles of blocks ``[n]``; NaN without an answer."""

    repeated: F64
    """Of a block that repeats without end, which is what a cost model answers for."""
    single: F64
    """Of a pass that waits for no register of a pass before it; never more than ``repeated``."""


def pass_cycles(model: CostModel, blocks: Sequence[bytes]) -> PassCycles:
    """Return the cycles of ``blocks``, in their order.

    A single pass is priced as the block with the registers cut off through which it would wait for
    itself (:mod:`nestor.cost.isa.recurrence`).
    """
    repeated = answers(model, blocks).cycles
    cut = answers(model, [_cut(block) for block in blocks]).cycles
    single = np.where(np.isnan(repeated), np.nan, np.fmin(repeated, cut))
    return PassCycles(repeated, single)


def _cut(block: bytes) -> bytes:
    try:
        return without_recurrence(block)
    except DecodeError:
        return block
