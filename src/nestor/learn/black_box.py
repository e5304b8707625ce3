"""What learners share that see of a policy only its score: candidates compared on a few modules."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Generic, TypeVar

import numpy as np
import numpy.typing as npt

from nestor.learn.episodic import Episodic, S, State
from nestor.policy.network import MlpPolicy

F64 = npt.NDArray[np.float64]


T = TypeVar("T", bound=State)


@dataclass(frozen=True)
class BlackBox(Episodic[S], ABC, Generic[S, T]):
    """A learner that is to be given its candidates and its update.

    See :class:`nestor.learn.learner.Learner`.
    """

    def batch(self, state: T) -> F64:
        """Return each candidate's change of this step's modules' bytes, ``[candidates]``.

        It is relative to stock, and NaN where a compile failed.
        """
        modules = self.drawn(state)
        candidates = [self._at(x) for x in self._candidates(state)]
        totals = self.episodes.totals(candidates, modules)
        stock = self.episodes.reference.totals[modules]
        return np.asarray(totals.sum(axis=1) / stock.sum() - 1)

    @abstractmethod
    def _candidates(self, state: T) -> F64:
        """Return the parameters to compare, ``[candidates, parameters]``."""

    def _at(self, parameters: F64) -> MlpPolicy:
        return self.start.with_parameters(parameters.astype(np.float32))


def mean_change_pct(changes: F64) -> float:
    """Return the mean of those changes that are known, in per cent; 0 if there are none."""
    finite = changes[np.isfinite(changes)]
    return 100 * float(finite.mean()) if len(finite) else 0.0
