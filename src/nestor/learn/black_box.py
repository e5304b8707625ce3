"""What learners share that see of a policy only its score: candidates compared on a few modules."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Final, Generic, TypeVar

import numpy as np
import numpy.typing as npt

from nestor.learn.episodic import Episodic, S, State
from nestor.policy.network import MlpPolicy

F64 = npt.NDArray[np.float64]


T = TypeVar("T", bound=State)

_HOPE: Final = 1e-6
"""What a certain deviation is worth beside the bytes: less than one byte of a million."""


@dataclass(frozen=True)
class BlackBox(Episodic[S], ABC, Generic[S, T]):
    """A learner that is to be given its candidates and its update.

    See :class:`nestor.learn.learner.Learner`.
    """

    def batch(self, state: T) -> F64:
        """Return each candidate's change of this step's modules' bytes, ``[candidates]``.

        It is relative to stock, and NaN where a compile failed. Most deviations cost bytes, so that
        a search soon comes to where nothing deviates and all candidates are alike. Among them the
        one that is nearer to deviating is the better by a trace: so the search stays at the edge,
        where it can find out which deviations pay, and does not drift away.
        """
        modules = self.drawn(state)
        candidates = [self._at(x) for x in self._candidates(state)]
        totals = self.episodes.totals(candidates, modules)
        reference = self.episodes.reference
        stocks = [reference.stocks[int(module)] for module in modules]
        hope = [np.mean([stock.deviation(c).mean() for stock in stocks]) for c in candidates]
        change = totals.sum(axis=1) / reference.totals[modules].sum() - 1
        return np.asarray(change - _HOPE * np.array(hope))

    @abstractmethod
    def _candidates(self, state: T) -> F64:
        """Return the parameters to compare, ``[candidates, parameters]``."""

    def _at(self, parameters: F64) -> MlpPolicy:
        return self.start.with_parameters(parameters.astype(np.float32))


def mean_change_pct(changes: F64) -> float:
    """Return the mean of those changes that are known, in per cent; 0 if there are none."""
    finite = changes[np.isfinite(changes)]
    return 100 * float(finite.mean()) if len(finite) else 0.0
