"""How far predicted cycles are from measured ones, and how sure that is.

Errors are relative to the measurement and in per cent. Intervals are percentile bootstraps
(Efron) over groups of rows: rows that share an opcode sequence err together, and drawing them
one by one would make every interval too narrow.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import stats

F64 = NDArray[np.float64]
Index = NDArray[np.int64]


@dataclass(frozen=True)
class Quality:
    """How good a model is on some rows; None where the rows are too few or all alike."""

    n: int
    """Rows judged."""
    mape: float | None
    """Mean absolute error in per cent of the measured cycles."""
    median_ape: float | None
    """Median of the same."""
    kendall: float | None
    """Kendall's tau-b between predicted and measured cycles."""
    spearman: float | None
    """Spearman's rank correlation."""


@dataclass(frozen=True)
class Interval:
    """A mean and its 95 % interval."""

    mean: float
    low: float
    high: float


@dataclass(frozen=True)
class Coverage:
    """How the predicted intervals fare against the measurements."""

    share: float | None
    """Per cent of the measurements that lie inside."""
    width: float | None
    """Mean width in per cent of the measured cycles."""


def absolute_errors(predicted: F64, measured: F64) -> F64:
    """Return |predicted − measured| in per cent of the measured cycles, ``[n]``."""
    errors: F64 = 100.0 * np.abs(predicted - measured) / measured
    return errors


def quality(predicted: F64, measured: F64) -> Quality:
    """Judge predictions ``[n]`` of positive measurements ``[n]``; all must be finite."""
    if len(measured) == 0:
        return Quality(0, None, None, None, None)
    errors = absolute_errors(predicted, measured)
    return Quality(
        len(measured),
        float(errors.mean()),
        float(np.median(errors)),
        kendall(predicted, measured),
        spearman(predicted, measured),
    )


def mape(predicted: F64, measured: F64) -> float:
    """Return the mean absolute error in per cent."""
    return float(absolute_errors(predicted, measured).mean())


def median_ape(predicted: F64, measured: F64) -> float:
    """Return the median absolute error in per cent."""
    return float(np.median(absolute_errors(predicted, measured)))


def kendall(predicted: F64, measured: F64) -> float | None:
    """Return Kendall's tau-b; None where all values of one side are equal."""
    if _constant(predicted) or _constant(measured):
        return None
    return float(stats.kendalltau(predicted, measured).statistic)


def spearman(predicted: F64, measured: F64) -> float | None:
    """Return Spearman's rho; None where all values of one side are equal."""
    if _constant(predicted) or _constant(measured):
        return None
    return float(stats.spearmanr(predicted, measured).statistic)


def coverage(low: F64, high: F64, measured: F64) -> Coverage:
    """Judge intervals ``[n]``; there are none where an end is not finite."""
    finite = np.isfinite(low) & np.isfinite(high)
    low, high, measured = low[finite], high[finite], measured[finite]
    if len(measured) == 0:
        return Coverage(None, None)
    inside = (low <= measured) & (measured <= high)
    return Coverage(100.0 * float(inside.mean()), 100.0 * float(((high - low) / measured).mean()))


def interval(
    values: F64, groups: Index | None = None, *, seed: int = 0, resamples: int = 2000
) -> Interval:
    """Return the mean of ``values`` ``[n]`` with its 95 % bootstrap interval.

    With errors as values this is the interval of the MAPE; with differences of two models' errors
    on the same rows it is the paired bootstrap of their difference.

    :param groups: rows of one group ``[n]`` are drawn together; without, each row is drawn alone.
    """
    if len(values) == 0:
        return Interval(np.nan, np.nan, np.nan)
    numbers = (
        np.arange(len(values)) if groups is None else np.unique(groups, return_inverse=True)[1]
    )
    sums = np.bincount(numbers, values)
    counts = np.bincount(numbers).astype(np.float64)
    generator = np.random.default_rng(seed)
    means = np.empty(resamples)
    for i in range(resamples):
        drawn = generator.integers(len(sums), size=len(sums))
        means[i] = sums[drawn].sum() / counts[drawn].sum()
    low, high = np.percentile(means, [2.5, 97.5])
    return Interval(float(values.mean()), float(low), float(high))


def _constant(values: F64) -> bool:
    return len(values) < 2 or bool((values == values[0]).all())
