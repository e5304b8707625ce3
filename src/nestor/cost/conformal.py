"""Intervals with a promised coverage, by split conformal prediction.

All look at errors on rows that the model was not trained on. Models that predict a
spread for each block scale it (after Lei, G'Sell, Rinaldo, Tibshirani and Wasserman,
"Distribution-Free Predictive Inference for Regression", JASA 2018, section 5.2, locally weighted);
models without one get the same factors for all blocks (Vovk et al., "Algorithmic Learning in a
Random World", 2005).
"""

import numpy as np
from numpy.typing import NDArray

from nestor.cost.contract import COVERAGE

F64 = NDArray[np.float64]


def calibration_factor(errors: F64, spreads: F64, coverage: float = COVERAGE) -> float:
    """Return what to multiply predicted spreads by, so that they hold ``coverage`` of the errors.

    :param errors: absolute errors ``[n]``.
    :param spreads: predicted spreads of the same rows, positive ``[n]``.
    """
    scores = np.sort(errors / spreads)
    rank = int(np.ceil((len(scores) + 1) * coverage)) - 1
    return float(scores[min(rank, len(scores) - 1)]) if len(scores) else 1.0


def interval_factors(residuals: F64) -> tuple[float, float]:
    """Return the factors on a prediction between which ``COVERAGE`` of the measurements lie.

    :param residuals: ln measured − ln predicted ``[n]``.
    """
    outside = (1 - COVERAGE) / 2
    n = len(residuals)
    upper = min(1.0, (1 - outside) * (n + 1) / n)
    low, high = np.quantile(residuals, [1 - upper, upper])
    return float(np.exp(low)), float(np.exp(high))


def weighted_interval_factors(residuals: F64, weights: F64) -> tuple[float, float]:
    """Return :func:`interval_factors` where rows of one group share a weight of 1.

    :param residuals: ln measured − ln predicted ``[n]``.
    :param weights: of the rows, positive ``[n]``; their sum counts the groups.
    """
    order = np.argsort(residuals, kind="stable")
    groups = weights.sum()
    places = (np.cumsum(weights[order]) - weights[order] / 2) / groups
    upper = min(1.0, (1 - (1 - COVERAGE) / 2) * (groups + 1) / groups)
    low, high = np.interp([1 - upper, upper], places, residuals[order])
    return float(np.exp(low)), float(np.exp(high))
