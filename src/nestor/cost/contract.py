"""What a cost model is: blocks in, cycles with an interval out.

A *block* is the machine code of one basic block without the jump that ends it; its *cycles* are
those of one pass through it when it runs over and over. Every model answers through
:class:`CostModel`, so that one evaluation serves them all. ``nestor.cost.registry.open_model``
opens any of them by name or file.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, Protocol, runtime_checkable

from nestor.errors import NestorError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

COVERAGE: Final = 0.9
"""The share of measurements that a predicted interval is meant to hold."""


class ModelError(NestorError):
    """A cost model cannot be read, trained or used; the text says what to do."""


@dataclass(frozen=True)
class Prediction:
    """Predicted cycles of one pass through each block, ``[n]`` each; NaN without an answer."""

    cycles: "NDArray[np.float64]"
    """NaN for undecodable bytes, and for the rows of :attr:`refused`."""
    low: "NDArray[np.float64]"
    """Lower end of the interval that holds 90 % of measurements; NaN without an interval."""
    high: "NDArray[np.float64]"
    refused: Mapping[int, str] = field(default_factory=lambda: MappingProxyType({}))
    """By row, why a block that can be decoded has no answer."""
    untrained: Mapping[int, tuple[str, ...]] = field(default_factory=lambda: MappingProxyType({}))
    """By row, the instructions that the model never saw in training; the interval is wider."""

    def part(self, start: int, stop: int) -> "Prediction":
        """Return the rows from ``start`` to ``stop``, which is not among them."""
        rows = slice(start, stop)
        return Prediction(
            self.cycles[rows],
            self.low[rows],
            self.high[rows],
            {row - start: text for row, text in self.refused.items() if start <= row < stop},
            {row - start: names for row, names in self.untrained.items() if start <= row < stop},
        )


@runtime_checkable
class CostModel(Protocol):
    """Anything that predicts the cycles of blocks."""

    def predict(self, blocks: Sequence[bytes]) -> Prediction:
        """Return the cycles of ``blocks``, in their order; never raises on their content."""
        ...
