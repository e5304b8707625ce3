"""Intervals that hold what they promise: split conformal prediction of the scaled error.

After Lei, G'Sell, Rinaldo, Tibshirani and Wasserman, "Distribution-Free Predictive Inference for
Regression", JASA 2018, section 5.2 (locally weighted).
"""

import numpy as np
from numpy.typing import NDArray

F64 = NDArray[np.float64]


def calibration_factor(errors: F64, spreads: F64, coverage: float) -> float:
    """Return what to multiply predicted spreads by, so that they hold ``coverage`` of errors.

    :param errors: absolute errors of rows that the model was not trained on, [n].
    :param spreads: predicted spreads of the same rows, positive, [n].
    """
    scores = np.sort(errors / spreads)
    rank = int(np.ceil((len(scores) + 1) * coverage)) - 1
    return float(scores[min(rank, len(scores) - 1)]) if len(scores) else 1.0
