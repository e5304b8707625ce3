"""Train our own cost model: fit the simulated core, then what it cannot explain."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from nestor.cost.hybrid import HybridModel
from nestor.cost.table import Table
from nestor.progress import Progress, silent

Index = NDArray[np.int64]


@dataclass(frozen=True)
class TrainingSettings:
    """How our own model is trained."""

    passes: int = 2
    """Rounds of coordinate descent over the parameters of the core."""
    trees: int = 1000
    """Trees of the residual model."""
    leaves: int = 127
    """Leaves of one tree."""
    learning_rate: float = 0.06
    threads: int = 2


def train(
    table: Table,
    index: Index | Sequence[int],
    settings: TrainingSettings | None = None,
    seed: int = 0,
    progress: Progress = silent,
) -> HybridModel:
    """Return a model trained on the rows ``index`` of ``table`` (unstable rows are left out)."""
    raise NotImplementedError


def save(model: HybridModel, path: Path) -> None:
    """Write ``model`` to a safetensors file, atomically."""
    raise NotImplementedError
