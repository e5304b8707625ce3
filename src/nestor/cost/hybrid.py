"""Our own model: a simulated core, trees over what it sees, and a calibrated interval."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from nestor.cost.model import Prediction


@dataclass(frozen=True)
class HybridModel:
    """A trained model, ready to predict."""

    machine: str
    """The machine that it predicts for."""

    def predict(self, blocks: Sequence[bytes]) -> Prediction:
        """Return the cycles of ``blocks``; NaN where a block cannot be decoded."""
        raise NotImplementedError


def read(path: Path, machine: str | None = None) -> HybridModel:
    """Open a model file.

    :raises ModelError: if it is missing, damaged or does not know ``machine``.
    """
    raise NotImplementedError
