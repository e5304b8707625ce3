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

from nestor.cost.contract import ModelError, Prediction
from nestor.cost.core.parameters import CoreParameters
from nestor.cost.core.simulator import F32, widened
from nestor.cost.isa.templates import Templates
from nestor.cost.model.forest import Forest
from nestor.cost.model.levels import REACH
from nestor.cost.model.session import LearnedSession, ResidualMemory


@dataclass(frozen=True)
class MachinePart:
    """What a model holds of one machine."""

    name: str
    core: CoreParameters
    memory: ResidualMemory = field(repr=False)
    """How far the simulation was off in training, by key of the code."""
    levels: F32 = field(repr=False)
    """Logs of cycles that answers move to: see :mod:`nestor.cost.model.levels`."""
    factor: float
    """Of the interval."""


@dataclass(frozen=True)
class Parts:
    """Everything a model file holds."""

    templates: Templates = field(repr=False)
    machines: tuple[MachinePart, ...]
    edges: F32 = field(repr=False)
    """Thresholds of the features' bins, feature after feature."""
    starts: NDArray[np.int32] = field(repr=False)
    """Where the edges of each feature begin, and their number ``[features + 1]``."""
    residual: Forest = field(repr=False)
    """Trees for ln measured − ln simulated."""
    spread: Forest = field(repr=False)
    """Trees for the logarithm of the size of the error."""
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
                f"The model has no machine '{machine}'; name one of: {', '.join(names)}."
            )
        number = names.index(machine) if machine is not None else 0
        self.parts = parts
        self.part = parts.machines[number]
        # Templates are added when new instructions are met; the model's own stay as they are.
        templates = parts.templates.copy()
        self.session = LearnedSession(templates)
        self.session.set_core(widened(self.part.core, templates))
        self.session.set_bins(parts.edges, parts.starts)
        self.session.set_forest("residual", parts.residual)
        self.session.set_forest("spread", parts.spread)
        self.session.set_residual_memory(self.part.memory)
        self.session.set_levels(self.part.levels, REACH)
        self.session.calibrate(number, self.part.factor, parts.on_core)
        self._lock = threading.Lock()

    @property
    def machine(self) -> str:
        """The machine that it predicts for."""
        return self.part.name

    def predict(self, blocks: Sequence[bytes]) -> Prediction:
        """Return the cycles of ``blocks``; NaN where a block cannot be decoded.

        Answers are kept by the bytes of their block, so that a block that comes again costs little.
        """
        with self._lock:
            answers = self.session.predict(blocks, self.part.core)
        cycles, low, high = (answers[name].astype(np.float64) for name in ("cycles", "low", "high"))
        return Prediction(cycles, low, high)

    def forget(self) -> None:
        """Empty the cache of answers, for measurements of speed."""
        with self._lock:
            self.session.forget_answers()
