"""Grow boosted trees with LightGBM: for the residual of the simulation, and for its spread.

LightGBM keeps the number of its threads for the whole process, and a call that does not name one
sets it back to that of all cores. Another thread that is building a data set at that moment writes
beyond its buffers: so every call here names it, and fits at the same time name the same.
(``train`` hands its number to its data set.)
"""

from dataclasses import dataclass
from typing import Any, Final

import lightgbm
import numpy as np

from nestor.cost.core.simulator import F32, F64
from nestor.progress import Progress


@dataclass(frozen=True)
class TreeSettings:
    """How one forest is grown."""

    trees: int
    leaves: int
    rate: float
    """Learning rate."""
    depth: int = 10
    smallest_leaf: int = 12
    """Rows in a leaf at least."""
    threads: int = 2


_BINNING: Final = {
    "max_bin": 255,
    "use_missing": False,
    "feature_pre_filter": False,
    "verbosity": -1,
    "force_row_wise": True,
}


def binned(features: F32, threads: int) -> lightgbm.Dataset:
    """Return rows whose bins several forests can share, so that none has thresholds of its own."""
    parameters = {**_BINNING, "num_threads": threads}
    return lightgbm.Dataset(features, params=parameters, free_raw_data=False).construct()


def predicted(booster: lightgbm.Booster, features: F32, threads: int) -> F64:
    """Return what ``booster`` predicts for ``features`` ``[n, features]``: ``[n]``."""
    return np.asarray(booster.predict(features, num_threads=threads), dtype=np.float64)


def grow(
    features: F32,
    target: F64,
    settings: TreeSettings,
    seed: int,
    quantile: float | None = None,
    progress: Progress | None = None,
    stage: str = "",
    like: lightgbm.Dataset | None = None,
    weights: F64 | None = None,
) -> lightgbm.Booster:
    """Return trees for the median of ``target``, or for another quantile.

    :param features: ``[n, features]``; ``target`` is ``[n]``.
    :param stage: what ``progress`` calls the work.
    :param like: rows of :func:`binned`, to use their bins.
    :param weights: of the rows ``[n]``; without, all count alike.
    """

    def report(environment: Any) -> None:
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
    data = lightgbm.Dataset(features, target, reference=like, weight=weights, params=_BINNING)
    return lightgbm.train(parameters, data, settings.trees, callbacks=[report])
