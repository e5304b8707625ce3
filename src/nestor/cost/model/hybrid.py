"""Our own model: a simulated core, trees over what it sees, and a calibrated interval.

log(cycles) = log(simulated cycles) + residual(features), moved to a throughput that blocks have if
one is very near. The simulation knows the machine, the trees know where the simulation is wrong,
and all of it runs on the native side (``native/cost``), so that Python only hands over bytes.
"""

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Final

import numpy as np
from numpy.typing import NDArray

from nestor.cost.contract import ModelError, Prediction
from nestor.cost.core.parameters import CoreParameters
from nestor.cost.core.simulator import F32, widened
from nestor.cost.isa.refusals import refusal
from nestor.cost.isa.templates import Templates
from nestor.cost.model.forest import Forest
from nestor.cost.model.levels import GRAIN, REACH
from nestor.cost.model.opcode_intervals import OpcodeIntervals
from nestor.cost.model.session import LearnedSession, ResidualMemory
from nestor.cost.model.trained_forms import TrainedForms

_TOO_FEW: Final = (
    "is not in training, which has too few opcodes to say how far off an answer would be"
)
"""Ends the reason for a block whose opcodes have the costs of another machine."""


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
    opcodes: TrainedForms = field(repr=False)
    """What the training rows have, and what stands in for the rest."""
    borrowed: OpcodeIntervals
    """Of blocks with opcodes that were measured on another machine alone."""
    ordered: NDArray[np.uint8] = field(repr=False)
    """Whether the fine trees order the blocks at a level ``[levels]``."""
    method: str = ""
    """How its labels were measured; empty if the table did not say."""
    reach: float = REACH
    """How far answers move to a level at most."""


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
    fine: Forest = field(repr=False)
    """Trees for how far a block is beside the level that it is at; maybe none."""
    provenance: Mapping[str, str]
    """What it was trained on and how."""


class HybridModel:
    """A trained model, ready to predict for one of its machines."""

    refuses: ClassVar[bool] = True
    """It gives no answer, but a reason, for blocks that have no throughput to predict."""

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
        self.session.set_forest("fine", parts.fine)
        self.session.set_levels(self.part.levels, self.part.reach, self.part.ordered, GRAIN)
        self.session.calibrate(number, self.part.factor, parts.on_core)
        self.session.set_form_statuses(self.part.opcodes.statuses)
        self._lock = threading.Lock()

    @property
    def machine(self) -> str:
        """The machine that it predicts for."""
        return self.part.name

    @property
    def method(self) -> str:
        """How the labels were measured that it learned from; empty if that is not known."""
        return self.part.method

    def predict(self, blocks: Sequence[bytes]) -> Prediction:
        """Return the cycles of ``blocks``; NaN where a block cannot be decoded or is refused.

        Answers are kept by the bytes of their block, so that a block that comes again costs little.
        """
        with self._lock:
            answers = self.session.predict(blocks, self.part.core)
        cycles, low, high = (answers[name].astype(np.float64) for name in ("cycles", "low", "high"))
        opcodes, intervals = self.part.opcodes, self.part.borrowed
        refused = {row: refusal(blocks[row]) for row in _rows(answers["refused"])}
        unmeasured = set(_rows(answers["untrained"])) - set(refused)
        refused |= {row: _never_measured(opcodes.unmeasured(blocks[row])) for row in unmeasured}
        untrained = {
            row: opcodes.untrained(blocks[row])
            for row in _rows(answers["borrowed"])
            if row not in refused
        }
        rows = np.array(list(untrained), dtype=np.int64)
        if len(rows) and intervals:
            shares = answers["borrowed"][rows] / answers["instructions"][rows]
            least, most = intervals.factors(shares)
            low[rows] = np.minimum(low[rows], least * cycles[rows])
            high[rows] = np.maximum(high[rows], most * cycles[rows])
        else:
            refused |= {row: f"{', '.join(names)} {_TOO_FEW}" for row, names in untrained.items()}
        withheld = list(refused)
        cycles[withheld] = low[withheld] = high[withheld] = np.nan
        return Prediction(cycles, low, high, refused, untrained)

    def forget(self) -> None:
        """Empty the cache of answers, for measurements of speed."""
        with self._lock:
            self.session.forget_answers()


def _rows(marks: NDArray[Any]) -> list[int]:
    """Return where ``marks`` ``[n]`` are not 0."""
    return [int(row) for row in np.flatnonzero(marks)]


def _never_measured(opcodes: Sequence[str]) -> str:
    return f"{', '.join(opcodes)} is not in training and was not measured on another machine"
