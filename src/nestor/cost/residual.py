"""Learn what the simulated core gets wrong, and how wrong the sum of both may be.

The target is log(measured / simulated). What training remembers of like code must not be what a
row itself contributed, and must work both for sequences that were seen and for new ones. So each
row is given a *mode* by chance: in the one, the rows of its random fold are forgotten, in the
other, those of all sequences in its fold of sequences. The spread is learned from errors under
the same regime, which is why one calibration serves both kinds of blocks.
"""

from dataclasses import dataclass
from typing import Any

import lightgbm
import numpy as np
from numpy.typing import NDArray

from nestor.cost.features import FEATURES, PLAIN
from nestor.cost.forest import F32
from nestor.cost.simulation import F64, I64, Simulator
from nestor.progress import Progress

FOLDS = 5
CLIP = 1.5
"""Residuals beyond this (in logs) are not remembered further: they are accidents."""


@dataclass(frozen=True)
class TreeSettings:
    """How one forest is grown."""

    trees: int
    leaves: int
    rate: float
    depth: int = 10
    smallest_leaf: int = 12
    threads: int = 2


@dataclass(frozen=True)
class Folds:
    """Which rows a row must not learn from, all of shape [n]."""

    by_chance: I64
    by_sequence: I64
    new: NDArray[np.bool_]
    """The mode: whether the row stands for sequences that training has not seen."""

    def held_out(self, fold: int) -> NDArray[np.bool_]:
        """Return the rows that are judged in ``fold``."""
        return np.asarray(np.where(self.new, self.by_sequence, self.by_chance) == fold)

    def usable(self, fold: int) -> NDArray[np.bool_]:
        """Return the rows that may be learned from in ``fold``."""
        return np.asarray((self.by_chance != fold) & (self.by_sequence != fold))


def draw_folds(sequences: I64, share_new: float, seed: int) -> Folds:
    """Deal rows out to folds.

    :param sequences: the number of each row's opcode sequence, [n].
    :param share_new: share of rows that are treated as if their sequence were new.
    """
    random = np.random.default_rng(seed)
    rows = len(sequences)
    by_sequence = random.integers(0, FOLDS, int(sequences.max(initial=0)) + 1)[sequences]
    return Folds(random.integers(0, FOLDS, rows), by_sequence, random.random(rows) < share_new)


def remembered(simulator: Simulator, rows: I64, residuals: F32, folds: Folds) -> F32:
    """Return what is remembered for each row when its own fold is forgotten.

    :param rows: numbers of the kept blocks, [n]; ``residuals`` and ``folds`` are by place in it.
    """
    out = np.zeros((len(rows), len(FEATURES) - PLAIN - 1), dtype=np.float32)
    clipped = np.clip(residuals, -CLIP, CLIP).astype(np.float32)
    for numbers, mode in ((folds.by_chance, ~folds.new), (folds.by_sequence, folds.new)):
        for fold in range(FOLDS):
            rest, mine = numbers != fold, (numbers == fold) & mode
            simulator.remember(rows[rest], clipped[rest])
            out[mine] = simulator.recall(rows[mine])
    return out


_BINNING = {
    "max_bin": 255,
    "use_missing": False,
    "feature_pre_filter": False,
    "verbosity": -1,
    "force_row_wise": True,
}


def binned(features: F32) -> lightgbm.Dataset:
    """Return rows whose bins several forests can share, so that none has thresholds of its own."""
    return lightgbm.Dataset(features, params=_BINNING, free_raw_data=False).construct()


def grow(
    features: F32,
    target: F64,
    settings: TreeSettings,
    seed: int,
    quantile: float | None = None,
    progress: Progress | None = None,
    stage: str = "",
    like: lightgbm.Dataset | None = None,
) -> lightgbm.Booster:
    """Return trees for the median of ``target``, or for another quantile.

    :param like: rows of :func:`binned`, to use their bins.
    """

    def told(environment: Any) -> None:
        if progress and environment.iteration % 10 == 0:
            progress(stage, environment.iteration, settings.trees)

    parameters: dict[str, Any] = {
        **_BINNING,
        "objective": "quantile" if quantile else "regression_l1",
        "num_leaves": settings.leaves,
        "max_depth": settings.depth,
        "learning_rate": settings.rate,
        "min_data_in_leaf": settings.smallest_leaf,
        "feature_fraction": 0.4,
        "bagging_fraction": 0.8,
        "bagging_freq": 1,
        "num_threads": settings.threads,
        "seed": seed,
        "deterministic": True,
    }
    if quantile:
        parameters["alpha"] = quantile
    data = lightgbm.Dataset(features, target, reference=like, params=_BINNING)
    return lightgbm.train(parameters, data, settings.trees, callbacks=[told])
