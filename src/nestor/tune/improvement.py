"""What a move may be expected to save, learned from the moves of earlier searches.

Few moves save anything: the best order in which to try them is that of their *expected improvement*
(Jones, Schonlau and Welch, "Efficient global optimization", 1998), the mean of what they save where
a move that saves nothing counts 0. Boosted trees predict it from what is known of a move before it
is built. Their file is that of a policy of trees, since that is safe to read and fast to evaluate.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Final

import numpy as np

from nestor.policy.boosting import Boosting, boost
from nestor.policy.bundle import load
from nestor.policy.spec import F64
from nestor.policy.trees import TreesPolicy, from_lightgbm

_LEAST: Final = 1e-6


@dataclass(frozen=True)
class ExpectedImprovement:
    """The expected improvement of one problem's moves."""

    problem: str
    features: tuple[str, ...]
    """What is known of a move, by name."""
    most: float
    """Units that a move's saving counts at most: few save more, and those would decide alone."""
    boosting: Boosting
    path: Path
    """Of the trees that come with Nestor."""

    def saved(self, changes: F64, units: F64) -> F64:
        """Return what moves saved, in units, up to what counts at most; 0 where nothing.

        :param changes: of the score by each move, ``[moves]``.
        :param units: what of the score was a unit then, ``[moves]``.
        """
        return np.asarray(np.clip(-changes / units, 0.0, self.most), dtype=np.float64)

    @cached_property
    def packaged(self) -> TreesPolicy:
        """The trees that come with Nestor."""
        trees = load(self.path)
        assert isinstance(trees, TreesPolicy)
        return trees

    def fit(
        self,
        x: F64,
        saved: F64,
        weight: F64,
        provenance: Mapping[str, object] | None = None,
        seed: int = 0,
    ) -> TreesPolicy:
        """Return trees that predict the logarithm of what a move saves.

        :param x: features of moves, ``[moves, features]``.
        :param saved: what each saved (:meth:`saved`), ``[moves]``.
        :param provenance: what the moves are of, for the file.
        """
        return from_lightgbm(
            boost(x, saved, weight, seed, self.boosting),
            self.features,
            "decision",
            provenance=provenance,
            problem=self.problem,
            logarithmic=True,
        )

    def of(self, x: F64, trees: TreesPolicy | None = None) -> F64:
        """Return what each move may be expected to save, ``[moves]``, all above 0.

        :param x: their features, ``[moves, features]``.
        :param trees: instead of those that come with Nestor.
        """
        if not len(x):
            return np.zeros(0)
        logits = (trees or self.packaged).fast_logits(x)
        logarithm = np.clip(logits, np.log(_LEAST), np.log(self.most))
        return np.asarray(np.exp(logarithm), dtype=np.float64)
