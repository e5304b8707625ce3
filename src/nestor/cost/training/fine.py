"""Order the blocks of a crowd, where labels tell them apart.

Labels that crowd at one level need not be noise alone: half a cycle is 0.5006 for some blocks and
0.5036 for others, and like code says which. The trees of the residual answer to a few per cent and
blur this. So a small forest learns nothing but the distance of a label from its level. Code of new
opcode sequences it puts in no better order than none, so it learns from blocks whose sequence other
blocks have too, and orders such alone. A level keeps it if on rows left out it puts three of four
pairs that it orders in the right order; else all blocks at the level get the same answer.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import lightgbm
import numpy as np
from numpy.typing import NDArray

from nestor.cost.core.simulator import F32, F64, I64
from nestor.cost.model.features import SEQUENCE_KNOWN
from nestor.cost.model.levels import REACH, moved, rounded
from nestor.cost.training.trees import TreeSettings, grow, predicted

Flags = NDArray[np.uint8]

_RIGHT: Final = 0.5
"""Share of right orders less that of wrong ones, from which an order is worth saying: a pair that
is ordered and not tied raises Kendall's tau-b if this is above half of the tau of all pairs."""
_FEWEST: Final = 30
"""Rows left out that judge a level."""
_PAIRS: Final = 4000


@dataclass(frozen=True)
class Crowds:
    """The level of each row's label, those of several machines numbered through."""

    level: I64
    """Its number, −1 if the label is at none ``[n]``."""
    beside: F64
    """How far the label is above the nearest level, in logs ``[n]``."""
    sizes: tuple[int, ...]
    """Levels of each machine."""


def crowds_of(machines: Sequence[tuple[F64, F32]]) -> Crowds:
    """Return the crowds of each machine's labels and levels, both in logs."""
    numbers, beside, first = [], [], 0
    for logs, levels in machines:
        nearest = moved(logs, levels, np.inf)
        near = (np.abs(logs - nearest) <= REACH) & (len(levels) > 0)
        at = np.searchsorted(levels, nearest.astype(np.float32))
        numbers.append(np.where(near, at + first, -1))
        beside.append(logs - nearest)
        first += len(levels)
    sizes = tuple(len(levels) for _, levels in machines)
    return Crowds(np.concatenate(numbers), np.concatenate(beside), sizes)


def told_apart(answers: F64, crowds: Crowds, rows: NDArray[np.bool_], seed: int) -> Flags:
    """Return the levels at which ``answers`` order pairs of ``rows`` well enough ``[levels]``."""
    generator = np.random.default_rng(seed)
    flags = np.zeros(sum(crowds.sizes), dtype=np.uint8)
    for number in range(len(flags)):
        members = np.flatnonzero(rows & (crowds.level == number))
        if len(members) < _FEWEST:
            continue
        one, other = generator.choice(members, (2, _PAIRS))
        said = np.sign(answers[one] - answers[other])
        agreed = said * np.sign(crowds.beside[one] - crowds.beside[other])
        flags[number] = agreed.sum() > _RIGHT * np.abs(said).sum()
    return flags


def grow_fine(
    features: F32,
    crowds: Crowds,
    half: NDArray[np.bool_],
    threads: int,
    seed: int,
    like: lightgbm.Dataset,
) -> tuple[lightgbm.Booster | None, list[Flags]]:
    """Return the forest, None if no level keeps it, and which levels of each machine do.

    :param half: rows to learn from while the others judge ``[n]``.
    """
    settings = TreeSettings(100, 31, 0.1, smallest_leaf=20, threads=threads)
    inside = (crowds.level >= 0) & (features[:, SEQUENCE_KNOWN] > 0)
    flags = np.zeros(sum(crowds.sizes), dtype=np.uint8)
    if (inside & half).any():
        part = grow(
            features[inside & half], crowds.beside[inside & half], settings, seed, like=like
        )
        answers = rounded(predicted(part, features, threads))
        flags = told_apart(answers, crowds, inside & ~half, seed)
    split = np.split(flags, np.cumsum(crowds.sizes)[:-1])
    if not flags.any():
        return None, split
    return grow(features[inside], crowds.beside[inside], settings, seed, like=like), split
