"""How sure a difference is."""

from collections.abc import Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

_RESAMPLES: Final = 10_000


def geometric_mean_change_pct(before: Sequence[float], after: Sequence[float]) -> float:
    """Return the geometric mean of the ratios after/before, as a change in per cent.

    The ratio of two zeros counts as 1. Infinity or NaN if something has become of a zero.
    """
    low, high = np.asarray(before, dtype=np.float64), np.asarray(after, dtype=np.float64)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = np.where((low == 0) & (high == 0), 1.0, high / low)
        return float(100.0 * (np.exp(np.log(ratios).mean()) - 1.0))


def paired_bootstrap_pct(
    groups: Sequence[str],
    before: Sequence[float],
    after: Sequence[float],
    *,
    seed: int = 0,
    resamples: int = _RESAMPLES,
) -> tuple[float, float]:
    """Return a 95 % interval of the change of the total in per cent.

    Whole groups (projects) are drawn with replacement, since the programs of one project share
    code and style: the percentile bootstrap of Efron, clustered. With one group there is
    nothing to draw from, and both ends are the change itself. NaN if a total may be zero.
    """
    totals = _drawn_totals(groups, before, after, seed, resamples)
    with np.errstate(divide="ignore", invalid="ignore"):
        changes = 100.0 * (totals[:, 1] - totals[:, 0]) / totals[:, 0]
        low, high = np.percentile(changes, [2.5, 97.5])
    return float(low), float(high)


def mean_interval(groups: Sequence[str], values: Sequence[float]) -> tuple[float, float]:
    """Return a 95 % interval of the mean of ``values``, whole groups (projects) drawn.

    As :func:`paired_bootstrap_pct`, where each value counts the same however large its program is.
    """
    totals = _drawn_totals(groups, values, [1.0] * len(values), 0, _RESAMPLES)
    low, high = np.percentile(totals[:, 0] / totals[:, 1], [2.5, 97.5])
    return float(low), float(high)


def _drawn_totals(
    groups: Sequence[str],
    one: Sequence[float],
    other: Sequence[float],
    seed: int,
    resamples: int,
) -> npt.NDArray[np.float64]:
    """Return the totals of two columns over groups drawn with replacement ``[resamples, 2]``."""
    names = sorted(set(groups))
    index = {name: i for i, name in enumerate(names)}
    sums = np.zeros((len(names), 2))
    for group, *pair in zip(groups, one, other, strict=True):
        sums[index[group]] += pair
    generator = np.random.default_rng(seed)
    draws: npt.NDArray[np.intp] = generator.integers(len(names), size=(resamples, len(names)))
    drawn: npt.NDArray[np.float64] = sums[draws].sum(axis=1)
    return drawn
