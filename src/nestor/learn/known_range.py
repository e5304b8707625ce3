"""Where a policy may leave the default: the range guard of ``docs/reference/formats.md``."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from nestor.errors import NestorError

F64 = npt.NDArray[np.float64]

CALLEE_SIZES = ("callee_code_size", "callee_instructions")


def known_range(x: F64, features: Sequence[str], outliers: float) -> F64:
    """Return each feature's least and largest value that is known, ``[features, 2]``.

    :param x: the decisions that are known, ``[decisions, features]``.
    :param outliers: part of them, those with the largest callees, that counts as unknown: a
        mistake there costs far more bytes than a reward says.
    """
    known = np.stack([x.min(axis=0), x.max(axis=0)], axis=1)
    for index, name in enumerate(features):
        if name in CALLEE_SIZES:
            known[index, 1] = np.quantile(x[:, index], 1 - outliers)
    return known


def require_size(features: Sequence[str], outliers: float) -> None:
    """Refuse features by which the largest callees cannot be told.

    :raises NestorError: if ``outliers`` are to be unknown, and no feature is a callee's size.
    """
    if outliers > 0 and not set(features) & set(CALLEE_SIZES):
        raise NestorError(
            "The largest callees are left to the default, and no feature tells a callee's size: add"
            f" {CALLEE_SIZES[0]} to --features, or set outliers to 0."
        )
