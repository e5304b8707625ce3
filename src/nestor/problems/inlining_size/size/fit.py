"""Fit size models: non-negative least squares, then boosted trees for what it leaves.

Both weigh a function by the inverse of its size, between judging bytes, which would leave small
functions to chance, and judging parts of each function, which would let the large ones, where the
bytes are, go anywhere.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from nestor.policy.boosting import Boosting, boost
from nestor.policy.trees import from_lightgbm
from nestor.problems.inlining_size.size.model import (
    Linear,
    SizeModel,
    columns,
    input_names,
    inputs,
    trees_metadata,
)

F64 = npt.NDArray[np.float64]


@dataclass(frozen=True)
class FitSettings:
    """How a size model is fitted."""

    rounds: int = 200
    """Trees."""
    leaves: int = 31
    learning_rate: float = 0.06
    least_rows: int = 20
    """Functions that a leaf needs."""
    largest_ratio: float = 4.0
    """How far the base may be off; beyond this it counts as this."""


def groups(counts: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Return counts by what they stand for: ``2020``, the inputs of LLVM's estimator, and all."""
    named = ("initial_size", "blocks", "calls", "is_local", "is_linkonce_odr", "is_linkonce",
             "loops", "max_loop_depth", "max_dom_tree_level")  # fmt: skip
    old = tuple(n for n in counts if n in named or n.startswith(("opcode_", "pair_")))
    own = tuple(n for n in counts if not n.startswith("pair_"))
    return {"2020": old, "all": tuple(counts), "without pairs": own}


def linear(x: F64, y: F64) -> Linear:
    """Return the non-negative weights of ``x`` ``[rows, counts]`` that come closest to ``y``."""
    from scipy.optimize import nnls  # slow to import

    root = 1 / np.sqrt(np.maximum(1.0, y))
    design = np.concatenate([x, np.ones((len(x), 1))], axis=1)
    # Of normal equations, so that the work does not grow with the rows.
    scale = np.sqrt((design**2 * root[:, None] ** 2).sum(axis=0))
    scale[scale == 0] = np.inf  # what no function has says nothing: its weight is 0
    weighted = design / scale * root[:, None]
    gram = weighted.T @ weighted + 1e-9 * np.eye(design.shape[1])
    lower = np.linalg.cholesky(gram)
    found, _ = nnls(lower.T, np.linalg.solve(lower, weighted.T @ (y * root)))
    weights = found / scale
    return Linear(weights[:-1], float(weights[-1]), float(max(1.0, y.min())))


def fit(
    counts: Sequence[str],
    x: F64,
    y: F64,
    seed: int = 0,
    settings: FitSettings | None = None,
    read: Sequence[str] | None = None,
    provenance: Mapping[str, Any] | None = None,
) -> SizeModel:
    """Fit a model to functions ``x`` ``[rows, counts]`` of ``y`` bytes.

    :param read: the counts that the model is to read; all without.
    """
    settings = settings or FitSettings()
    read = tuple(read or counts)
    x = columns(counts, x, read)
    base = linear(x, y)
    bytes_ = base.base(x)
    boosting = Boosting(
        settings.rounds, settings.leaves, settings.learning_rate, settings.least_rows, l2=1.0
    )
    ratio = np.minimum(settings.largest_ratio, y / bytes_)
    booster = boost(inputs(read, x, bytes_), ratio, bytes_, seed, boosting)
    names = input_names(read)
    trees = from_lightgbm(
        booster, names, trees_metadata(read).answers, problem=trees_metadata(read).problem
    )
    return SizeModel(read, base, trees, dict(provenance or {}))
