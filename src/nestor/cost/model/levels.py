"""The throughputs at which the blocks of a machine crowd, and answers moved onto them.

A block that repeats settles into a rhythm of whole cycles, so its throughput is a simple fraction:
2, 1, 1/2, 1/3 cycles. Labels crowd around these as closely as the noise of the measurement allows,
which is 1.4 % on one machine and 0.06 % on another between blocks that differ in a constant alone.
Where it is much, little but noise orders two blocks of a crowd, and a model that tells them apart
claims what it cannot know; where it is little, trees of their own order them (``training.fine``).
"""

from typing import Final

import numpy as np
from numpy.typing import NDArray

F32 = NDArray[np.float32]
F64 = NDArray[np.float64]

REACH: Final = 0.04
"""How far an answer is moved at most, in logs: its error on code that training lacks, which is more
than the noise of a label."""
REACH_BEFORE: Final = 0.02
"""That of model files that do not say theirs."""
GRAIN: Final = 0.002
"""What the places of blocks beside their level are rounded to, in logs."""
_STEP: Final = 0.001
_WIDTH: Final = 0.008
"""Standard deviation of the Gaussian that smooths the histogram, in logs."""
_CROWD: Final = 10
"""Labels within :data:`REACH` that make a crowd."""


def levels_of(log_cycles: F64) -> F32:
    """Return the peaks of the density of labels ``[n]``, in logs and rising ``[k]``."""
    if not len(log_cycles):
        return np.zeros(0, dtype=np.float32)
    first = float(log_cycles.min()) - 0.1
    places = np.round((log_cycles - first) / _STEP).astype(np.int64)
    counts = np.bincount(places, minlength=int(places.max()) + 100)
    offsets = _STEP * np.arange(-40, 41)
    density = np.convolve(counts, np.exp(-0.5 * (offsets / _WIDTH) ** 2), "same")
    reach = round(REACH / _STEP)
    crowd = np.convolve(counts, np.ones(2 * reach + 1), "same") >= _CROWD
    higher = (density[1:-1] > density[:-2]) & (density[1:-1] >= density[2:])
    peaks = 1 + np.flatnonzero(higher & crowd[1:-1])
    return (first + _STEP * peaks).astype(np.float32)


def moved(log_cycles: F64, levels: F32, reach: float = REACH) -> F64:
    """Return answers ``[n]`` moved to the nearest level, those that are within ``reach``.

    The native side (``PredictApi.cpp``) does the same.
    """
    if not len(levels):
        return log_cycles
    between = (levels[1:] + levels[:-1]) / 2
    nearest = levels[np.searchsorted(between, log_cycles)].astype(np.float64)
    return np.where(np.abs(nearest - log_cycles) <= reach, nearest, log_cycles)


def rounded(beside: F64) -> F64:
    """Return what the fine trees say ``[n]`` as it is added to a level."""
    return np.clip(np.rint(beside / GRAIN) * GRAIN, -REACH, REACH)
