"""Compare candidate policies by the score of a few units; no gradient, no single decision."""

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from nestor.learn.episodes import Episodes
from nestor.policy.spec import Policy

F64 = npt.NDArray[np.float64]
I64 = npt.NDArray[np.int64]

Judge = Callable[[Sequence[Policy], int], F64]
"""Return the relative change of the score under each policy against stock, ``[policies]``.

All are compared on what the step of this number draws; NaN where a compile failed.
"""


def by_units(episodes: Episodes, seed: int, count: int) -> Judge:
    """Return what compares policies on so many units a step."""
    return lambda policies, step: relative_changes(
        episodes, policies, episodes.drawn(seed, step, count)
    )


def relative_changes(episodes: Episodes, policies: Sequence[Policy], units: I64) -> F64:
    """Return the change of the units' total score under each policy, ``[policies]``.

    It is relative to stock, and NaN where a compile failed.
    """
    totals = episodes.totals(policies, units)
    stock = episodes.reference.totals[units]
    return np.asarray(totals.sum(axis=1) / stock.sum() - 1)


def mean_change_pct(changes: F64) -> float:
    """Return the mean of those changes that are numbers, in per cent; 0 if there are none."""
    finite = changes[np.isfinite(changes)]
    return 100 * float(finite.mean()) if len(finite) else 0.0
