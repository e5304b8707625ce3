"""Gradient boosting whose models can become policies (Ke et al., "LightGBM", NIPS 2017)."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from nestor.errors import NestorError
from nestor.policy.spec import F64

if TYPE_CHECKING:
    import lightgbm

_FIXED: Final[dict[str, Any]] = {
    "bagging_fraction": 0.7,
    "bagging_freq": 1,
    "deterministic": True,
    "force_row_wise": True,
    "num_threads": 1,
    # A policy file has no missing values; they are numbers there (-1).
    "use_missing": False,
    "zero_as_missing": False,
    "verbosity": -1,
}


@dataclass(frozen=True)
class Boosting:
    """What differs between models."""

    rounds: int
    """Trees."""
    leaves: int
    """Of a tree, at most."""
    learning_rate: float
    least_rows: int
    """Rows that a leaf needs."""
    objective: str = "regression"
    feature_fraction: float = 0.5
    """Part of the features that a tree may read."""
    l2: float = 5.0
    """How strongly the values of leaves are drawn to 0."""

    def __post_init__(self) -> None:
        """Refuse what is no model.

        :raises NestorError: if there is no tree, or none that splits.
        """
        if self.rounds < 1 or self.leaves < 2:
            raise NestorError(
                f"Boosting takes 1 round or more, of trees with 2 leaves or more, not {self.rounds}"
                f" with {self.leaves}."
            )


def boost(x: F64, y: F64, weight: F64, seed: int, settings: Boosting) -> "lightgbm.Booster":
    """Fit ``y`` ``[rows]`` from ``x`` ``[rows, features]``; the seed decides the result."""
    import lightgbm  # slow to import

    options = {
        **_FIXED,
        "objective": settings.objective,
        "learning_rate": settings.learning_rate,
        "num_leaves": settings.leaves,
        "min_data_in_leaf": settings.least_rows,
        "feature_fraction": settings.feature_fraction,
        "lambda_l2": settings.l2,
        "seed": seed,
    }
    return lightgbm.train(options, lightgbm.Dataset(x, y, weight=weight), settings.rounds)
