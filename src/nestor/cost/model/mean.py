"""The mean of several models of one machine.

Where labels are few, chance decides much of what a fit finds: another start, or another order of
its steps, ends at other costs that explain the same labels. The errors of such models differ, so
their mean errs less than each of them (bagging: Breiman, Machine Learning 24, 1996).
"""

from collections.abc import Callable, Sequence
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from nestor.cost.contract import Prediction
from nestor.cost.model.hybrid import HybridModel


class MeanModel:
    """Answers with the geometric mean of what several models answer, and of their intervals."""

    refuses: ClassVar[bool] = True
    """It gives no answer, but a reason, for blocks that have no throughput to predict."""

    def __init__(self, models: Sequence[HybridModel]) -> None:
        self.models = tuple(models)

    @property
    def machine(self) -> str:
        """The machine that it predicts for."""
        return self.models[0].machine

    @property
    def method(self) -> str:
        """How the labels were measured that it learned from; empty if that is not known."""
        return self.models[0].method

    def predict(self, blocks: Sequence[bytes]) -> Prediction:
        """Return the cycles of ``blocks``; NaN where one of the models has no answer."""
        found = [model.predict(blocks) for model in self.models]

        def mean(of: Callable[[Prediction], NDArray[np.float64]]) -> NDArray[np.float64]:
            logs: NDArray[np.float64] = np.mean([np.log(of(one)) for one in found], axis=0)
            return np.exp(logs)

        refused = {row: text for one in reversed(found) for row, text in one.refused.items()}
        untrained = {row: text for one in reversed(found) for row, text in one.untrained.items()}
        return Prediction(
            mean(lambda one: one.cycles),
            mean(lambda one: one.low),
            mean(lambda one: one.high),
            refused,
            untrained,
        )

    def forget(self) -> None:
        """Empty the caches of answers, for measurements of speed."""
        for model in self.models:
            model.forget()


OwnModel = HybridModel | MeanModel
"""A model of our own kind, as a file holds it."""
