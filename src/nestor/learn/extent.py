"""Where a policy may leave the default: the range of values that its training has seen.

A mistake on a very large function costs far more than a reward says. A problem names the features
that tell how much a mistake can cost (``problem.features.extent``), and a policy leaves the largest
values of those to the default.
"""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from nestor.errors import NestorError

F64 = npt.NDArray[np.float64]


def observed_range(x: F64, features: Sequence[str], extent: Sequence[str], outliers: float) -> F64:
    """Return the least and the greatest value of each feature, ``[features, 2]``.

    :param x: rows of features that were seen, ``[rows, features]``.
    :param extent: names of the features that say how much a mistake can cost.
    :param outliers: part of the rows, those with the largest values of ``extent``, to leave out.
    """
    seen = np.stack([x.min(axis=0), x.max(axis=0)], axis=1)
    for index, name in enumerate(features):
        if name in extent:
            seen[index, 1] = np.quantile(x[:, index], 1 - outliers)
    return seen


def require_extent(features: Sequence[str], extent: Sequence[str], outliers: float) -> None:
    """Refuse features that do not say how much a mistake can cost.

    :raises NestorError: if ``outliers`` are to be left out, the problem has features of extent, and
        none of them is among ``features``.
    """
    if outliers > 0 and extent and not set(features) & set(extent):
        raise NestorError(
            "The decisions of largest extent are left to the default, and no feature says which"
            f" they are: add {extent[0]} to --features, or set outliers to 0."
        )
