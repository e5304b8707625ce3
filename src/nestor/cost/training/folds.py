"""Fold rows of training so that what is remembered of like code is never the row's own.

What training remembers of like code must not be what a row itself contributed, and must work both
for opcode sequences that were seen and for new ones. So each row is dealt a *mode*: in the one, the
rows of its random fold are forgotten, in the other, those of all sequences in its fold of
sequences. The spread is learned from errors under the same regime, which is why one calibration
serves both kinds of blocks.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from nestor.cost.core.simulator import F32, I64
from nestor.cost.model.features import MEMORY_FEATURES
from nestor.cost.model.session import LearnedSession

FOLDS: Final = 5
_LARGEST_RESIDUAL: Final = 1.5
"""Residuals beyond this (in logs) are remembered as this: they are accidents."""


@dataclass(frozen=True)
class Folds:
    """Which rows a row must not learn from, all ``[n]``."""

    random: I64
    """The row's random fold."""
    by_sequence: I64
    """The fold of its opcode sequence."""
    new: NDArray[np.bool_]
    """The mode: whether the row stands for sequences that training has not seen."""

    def held_out(self, fold: int) -> NDArray[np.bool_]:
        """Return the rows that are judged in ``fold``."""
        return np.asarray(np.where(self.new, self.by_sequence, self.random) == fold)

    def usable(self, fold: int) -> NDArray[np.bool_]:
        """Return the rows that may be learned from in ``fold``."""
        return np.asarray((self.random != fold) & (self.by_sequence != fold))


def draw_folds(sequences: I64, share_new: float, seed: int) -> Folds:
    """Deal rows out to folds.

    :param sequences: the number of each row's opcode sequence ``[n]``.
    :param share_new: share of rows that are treated as if their sequence were new.
    """
    generator = np.random.default_rng(seed)
    rows = len(sequences)
    by_sequence = generator.integers(0, FOLDS, int(sequences.max(initial=0)) + 1)[sequences]
    return Folds(
        generator.integers(0, FOLDS, rows), by_sequence, generator.random(rows) < share_new
    )


def clipped(residuals: NDArray[np.floating]) -> F32:
    """Return residuals ``[n]`` as they are remembered."""
    result: F32 = np.clip(residuals, -_LARGEST_RESIDUAL, _LARGEST_RESIDUAL).astype(np.float32)
    return result


def out_of_fold_memory(session: LearnedSession, rows: I64, residuals: F32, folds: Folds) -> F32:
    """Return what is remembered for each row when its own fold is forgotten.

    :param rows: numbers of the kept blocks ``[n]``; ``residuals`` and ``folds`` are by place in it.
    :return: :data:`~nestor.cost.model.features.MEMORY_FEATURES` ``[n, features]``.
    """
    out = np.zeros((len(rows), len(MEMORY_FEATURES)), dtype=np.float32)
    remembered = clipped(residuals)
    for numbers, mode in ((folds.random, ~folds.new), (folds.by_sequence, folds.new)):
        for fold in range(FOLDS):
            rest, judged = numbers != fold, (numbers == fold) & mode
            session.remember(rows[rest], remembered[rest])
            out[judged] = session.recall(rows[judged])
    return out
