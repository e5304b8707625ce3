"""Compare candidate policies by the score of a few units; no gradient, no single decision."""

import numpy as np
import numpy.typing as npt

from nestor.learn.episodes import Episodes
from nestor.learn.gradient.descent import policy_of
from nestor.policy.network import MlpPolicy

F64 = npt.NDArray[np.float64]
I64 = npt.NDArray[np.int64]


def relative_changes(episodes: Episodes, template: MlpPolicy, candidates: F64, units: I64) -> F64:
    """Return the change of the units' total score under each candidate, ``[candidates]``.

    It is relative to stock, and NaN where a compile failed.

    :param candidates: parameters for ``template``, ``[candidates, parameters]``.
    """
    totals = episodes.totals([policy_of(template, each) for each in candidates], units)
    stock = episodes.reference.totals[units]
    return np.asarray(totals.sum(axis=1) / stock.sum() - 1)


def mean_change_pct(changes: F64) -> float:
    """Return the mean of those changes that are numbers, in per cent; 0 if there are none."""
    finite = changes[np.isfinite(changes)]
    return 100 * float(finite.mean()) if len(finite) else 0.0
