"""Models of gains by gradient boosting (Ke et al., "LightGBM", NIPS 2017)."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from nestor.policy import trees
from nestor.policy.boosting import Boosting, boost
from nestor.policy.metadata import Metadata
from nestor.policy.spec import Policy, PolicyError
from nestor.policy.trees import TreesPolicy, from_lightgbm

if TYPE_CHECKING:
    import lightgbm

F64 = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Trees:
    """Sums of regression trees."""

    rounds: int = 150
    """Trees of a model."""
    coarse_rounds: int = 50
    """Trees of a coarse one."""
    leaves: int = 127
    learning_rate: float = 0.1
    least_rows: int = 10
    """Rows that a leaf needs."""

    def fit(self, x: F64, y: F64, weight: F64, seed: int, *, coarse: bool) -> "BoostedTrees":
        """Fit. See :class:`nestor.learn.distil.gain_model.Kind`."""
        boosting = Boosting(
            self.coarse_rounds if coarse else self.rounds,
            self.leaves,
            self.learning_rate,
            self.least_rows,
            feature_fraction=0.7,
        )
        return BoostedTrees(boost(x, y, weight, seed, boosting))

    def nothing(self, features: Sequence[str], problem: str) -> TreesPolicy:
        """Return the policy. See :class:`nestor.learn.distil.gain_model.Kind`."""
        metadata = Metadata("trees", tuple(features), "deviation", "none", {}, problem=problem)
        none, zero = np.zeros(1, np.int32), np.zeros(1)
        return TreesPolicy(
            metadata, root=none, feature=none - 1, threshold=zero, left=none, right=none, value=zero
        )

    def weighted_sum(self, parts: Sequence[tuple[Policy, float]], offset: float) -> Policy:
        """Sum. See :class:`nestor.learn.distil.gain_model.Kind`."""
        own = [(part, weight) for part, weight in parts if isinstance(part, TreesPolicy)]
        if len(own) < len(parts):
            raise PolicyError("only trees can be added to trees")
        return trees.weighted_sum(own, offset)


@dataclass(frozen=True)
class BoostedTrees:
    """A fitted model."""

    booster: "lightgbm.Booster"

    def predict(self, x: F64) -> F64:
        """Predict. See :class:`nestor.learn.distil.gain_model.Model`."""
        return np.asarray(self.booster.predict(x, num_threads=1), dtype=np.float64)

    def policy(self, features: Sequence[str], problem: str) -> TreesPolicy:
        """Return the policy. See :class:`nestor.learn.distil.gain_model.Model`."""
        return from_lightgbm(self.booster, features, "deviation", problem=problem)
