"""LLVM's static analyser as a cost model, rescaled to measured cycles."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from nestor.compiler.toolchain import find
from nestor.cost.baselines import rescaled
from nestor.cost.baselines.rescaled import Curve
from nestor.cost.contract import Prediction
from nestor.cost.llvm_tools import mca
from nestor.progress import Progress, silent

F64 = NDArray[np.float64]


@dataclass(frozen=True)
class McaModel:
    """What llvm-mca says, times what a curve makes of it."""

    curve: Curve | None = None
    """None: llvm-mca's cycles as they are, without an interval."""
    cpu: str = mca.CPU
    """The processor that llvm-mca models."""
    kind: ClassVar[str] = "llvm-mca"

    def predict(self, blocks: Sequence[bytes]) -> Prediction:
        """Return the cycles of ``blocks``; NaN where llvm-mca cannot analyse one.

        :raises NestorError: if there is no LLVM with llvm-mca.
        """
        return rescaled.prediction(self.curve, estimate(blocks, self.cpu))

    def contents(self) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
        """Return the arrays and the description of the model's file."""
        return dict(rescaled.contents(self.curve)), {"cpu": self.cpu}

    @staticmethod
    def restore(arrays: Mapping[str, NDArray[Any]], description: Mapping[str, Any]) -> "McaModel":
        """Return the model of a file's contents.

        :raises ModelError: if they do not fit together.
        """
        return McaModel(rescaled.restore(arrays), str(description["cpu"]))


def estimate(blocks: Sequence[bytes], cpu: str = mca.CPU, progress: Progress = silent) -> F64:
    """Return llvm-mca's own cycles per iteration ``[n]``; NaN where it has none.

    :raises NestorError: if there is no LLVM with llvm-mca, or it has no model of ``cpu``.
    """
    return mca.throughputs(find(), blocks, cpu, progress)
