"""What a cost model is: blocks in, cycles with an interval out.

A *block* is the machine code of one basic block; its *cycles* are those of one pass through it when
it is repeated without end. Every model of this wing answers through :class:`CostModel`, so that
one evaluation serves them all. :func:`load` opens our own (:mod:`nestor.cost.store`).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from nestor.errors import NestorError

F64 = NDArray[np.float64]

COVERAGE = 0.9
"""The share of measurements that a predicted interval is meant to hold."""


class ModelError(NestorError):
    """A cost model cannot be read, built or used; the text says what to do."""


@dataclass(frozen=True)
class Prediction:
    """Predicted cycles of one pass through each block, shape [n] each; NaN if undecodable."""

    cycles: F64
    low: F64
    """Lower end of the interval that holds 90 % of measurements."""
    high: F64


@runtime_checkable
class CostModel(Protocol):
    """Anything that predicts the cycles of blocks."""

    def predict(self, blocks: Sequence[bytes]) -> Prediction:
        """Return the cycles of ``blocks``, in their order; never raises on their content."""
        ...


def shipped_path() -> Path:
    """Return the file of the model that comes with the package."""
    return Path(__file__).parent / "data" / "shipped.safetensors"


def load(name_or_path: str | Path, machine: str | None = None) -> "CostModel":
    """Open a model of our own kind: ``shipped`` or a path.

    :param machine: the machine to predict for, by its name in the training table; the file's
        first if None.
    :raises ModelError: if there is no such file, it is damaged, or it does not know ``machine``.
    """
    from nestor.cost.store import read  # the native library is needed only by those who load

    path = shipped_path() if str(name_or_path) == "shipped" else Path(name_or_path)
    return read(path, machine)
