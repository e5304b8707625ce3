"""Our own model: a simulated core, trees over what it sees, and a calibrated interval.

log(cycles) = log(simulated cycles) + residual(features), moved to a throughput that blocks have if
one is very near. The simulation knows the machine, the trees know where the simulation is wrong,
and all of it runs on the native side (``native/cost``), so that Python only hands over bytes.
"""

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from nestor.cost.encoding import Templates
from nestor.cost.forest import F32, Forest
from nestor.cost.levels import REACH
from nestor.cost.machine import CoreParameters
from nestor.cost.model import ModelError, Prediction
from nestor.cost.simulation import Simulator, widened


@dataclass(frozen=True)
class MachinePart:
    """What a model knows about one machine."""

    name: str
    core: CoreParameters
    memory: tuple[NDArray[np.uint32], F32, NDArray[np.uint32]] = field(repr=False)
    """Keys, summed residuals and counts: see :class:`nestor.cost.simulation.Simulator`."""
    levels: F32 = field(repr=False)
    """Logs of cycles that answers move to: see :mod:`nestor.cost.levels`."""
    factor: float
    """Of the interval."""


@dataclass(frozen=True)
class Parts:
    """Everything a model file holds."""

    templates: Templates = field(repr=False)
    machines: tuple[MachinePart, ...]
    edges: F32 = field(repr=False)
    starts: NDArray[np.int32] = field(repr=False)
    residual: Forest = field(repr=False)
    spread: Forest = field(repr=False)
    on_core: bool
    """Whether the residual is added to the simulation; else it stands alone (an ablation)."""
    provenance: Mapping[str, str]
    """What it was trained on and how."""


class HybridModel:
    """A trained model, ready to predict for one of its machines."""

    def __init__(self, parts: Parts, machine: str | None = None) -> None:
        names = [part.name for part in parts.machines]
        if machine is not None and machine not in names:
            raise ModelError(
                f"The model does not know the machine '{machine}'; name one of: {', '.join(names)}."
            )
        number = names.index(machine) if machine is not None else 0
        self.parts = parts
        self.part = parts.machines[number]
        # The templates grow when new instructions are met; the model's own stay as they are.
        templates = Templates(
            list(parts.templates.keys), list(parts.templates.rows), list(parts.templates.forms)
        )
        self.simulator = Simulator(templates)
        self.simulator.set_core(widened(self.part.core, templates))
        self.simulator.set_bins(parts.edges, parts.starts)
        self.simulator.set_forest(0, parts.residual)
        self.simulator.set_forest(1, parts.spread)
        self.simulator.set_memory(*self.part.memory)
        self.simulator.set_levels(self.part.levels, REACH)
        self.simulator.calibrate(number, self.part.factor, parts.on_core)
        self._lock = threading.Lock()

    @property
    def machine(self) -> str:
        """The machine that it predicts for."""
        return self.part.name

    def predict(self, blocks: Sequence[bytes]) -> Prediction:
        """Return the cycles of ``blocks``; NaN where a block cannot be decoded.

        Answers are kept by the bytes of their block, so that it costs little to ask again.
        """
        with self._lock:
            answers = self.simulator.predict(blocks, self.part.core).astype(np.float64)
        return Prediction(cycles=answers[:, 0], low=answers[:, 1], high=answers[:, 2])

    def forget(self) -> None:
        """Empty the cache of answers, for measurements of speed."""
        with self._lock:
            self.simulator.forget_answers()
