"""From an estimate with a systematic error to cycles: a rising curve fitted on training rows.

llvm-mca and the bound do not see measurements. Both get the same correction: the median measured
cycles as a function of the estimate, monotone and linear between knots (both in logarithms). More
than a factor, and all that a rescaling can do; rank correlations stay as they are, but for ties.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nestor.cost import conformal
from nestor.cost.contract import ModelError, Prediction

F64 = NDArray[np.float64]

_KNOTS = 64
_FLOOR = 0.05
"""Cycles; an estimate below this counts as this."""


@dataclass(frozen=True)
class Curve:
    """Measured cycles as a function of estimated ones."""

    estimated: F64
    """Logarithms, rising strictly ``[k]``."""
    measured: F64
    """Logarithms, never falling ``[k]``."""
    low: float
    """Factor from the predicted cycles to the lower end of the interval."""
    high: float

    def rescale(self, estimate: F64) -> Prediction:
        """Return the rescaled ``estimate`` ``[n]``; NaN stays NaN."""
        cycles = np.exp(self._logarithm(estimate))
        return Prediction(cycles, cycles * self.low, cycles * self.high)

    def _logarithm(self, estimate: F64) -> F64:
        x = np.log(np.maximum(estimate, _FLOOR))  # NaN passes through
        inside = np.interp(x, self.estimated, self.measured)
        # Beyond the ends the curve goes on in proportion to the estimate.
        outside = x - np.clip(x, self.estimated[0], self.estimated[-1])
        logarithm: F64 = inside + outside
        return logarithm


def contents(curve: Curve | None) -> dict[str, F64]:
    """Return the arrays of a model file that hold ``curve``; none without one."""
    if curve is None:
        return {}
    factors = np.array([curve.low, curve.high])
    return {"estimated": curve.estimated, "measured": curve.measured, "factors": factors}


def restore(arrays: Mapping[str, NDArray[Any]]) -> Curve | None:
    """Return the curve in the arrays of a model file.

    :raises ModelError: if they are of the wrong kind.
    """
    if "estimated" not in arrays:
        return None
    wanted = ("estimated", "measured", "factors")
    x, y, factors = (np.asarray(arrays[name], dtype=np.float64) for name in wanted)
    whole = x.ndim == 1 and len(x) > 0 and x.shape == y.shape and factors.shape == (2,)
    if not whole or not all(np.isfinite(a).all() for a in (x, y, factors)):
        raise ModelError("its curve is damaged")
    return Curve(x, y, float(factors[0]), float(factors[1]))


def fit(estimate: F64, cycles: F64) -> Curve:
    """Return the curve from ``estimate`` ``[n]`` to measured ``cycles`` ``[n]``; NaN is left out.

    :raises ModelError: if too few rows are left.
    """
    usable = np.isfinite(estimate) & np.isfinite(cycles)
    if usable.sum() < 10:
        raise ModelError(
            f"{usable.sum()} rows with an estimate and a label are too few; take a larger table."
        )
    x, y = np.log(np.maximum(estimate[usable], _FLOOR)), np.log(cycles[usable])
    order = np.argsort(x, kind="stable")
    parts = np.array_split(order, min(_KNOTS, len(order) // 5))
    centres = np.array([np.median(x[part]) for part in parts])
    medians = np.array([np.median(y[part]) for part in parts])
    # Parts with one and the same estimate become one knot, at the median of their medians.
    knots, where = np.unique(centres, return_inverse=True)
    merged = np.array([np.median(medians[where == k]) for k in range(len(knots))])
    curve = Curve(knots, np.maximum.accumulate(merged), 1.0, 1.0)
    low, high = conformal.interval_factors(y - curve._logarithm(estimate[usable]))
    return Curve(curve.estimated, curve.measured, low, high)


def prediction(curve: Curve | None, estimate: F64) -> Prediction:
    """Return ``estimate`` rescaled, or as it is and without an interval if there is no curve."""
    if curve is not None:
        return curve.rescale(estimate)
    unknown = np.full(len(estimate), np.nan)
    return Prediction(estimate, unknown, unknown)
