"""An interval for models that have none: the spread of their own errors on known blocks."""

import numpy as np
from numpy.typing import NDArray

from nestor.cost.model import COVERAGE

F64 = NDArray[np.float64]


def factors(residuals: F64) -> tuple[float, float]:
    """Return the factors on predictions between which 90 % of measurements lie.

    :param residuals: ln measured − ln predicted on blocks kept back from training ``[n]``. Their
        quantiles are those of split conformal prediction (Vovk et al., 2005).
    """
    outside = (1 - COVERAGE) / 2
    n = len(residuals)
    upper = min(1.0, (1 - outside) * (n + 1) / n)
    low, high = np.quantile(residuals, [1 - upper, upper])
    return float(np.exp(low)), float(np.exp(high))
