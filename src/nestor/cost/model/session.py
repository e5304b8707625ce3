"""A native session with what is learned: features, memory of residuals, trees, predictions.

The C interface is ``native/cost/PredictApi.cpp``.
"""

import ctypes
import functools
from collections.abc import Callable, Sequence
from enum import IntEnum
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray

from nestor.cost.core.parameters import CoreParameters
from nestor.cost.core.simulator import (
    F32,
    I64,
    Decoding,
    Simulator,
    cost_library,
    joined,
    pointer,
    widened,
)
from nestor.cost.isa.templates import Templates
from nestor.cost.model.features import BLOCK_MEMORY, FEATURES, SIMULATION, records
from nestor.cost.model.forest import Forest, NodeShift
from nestor.cost.native.layout import Layout, check_layout

ResidualMemory = tuple[NDArray[np.uint32], F32, NDArray[np.uint32]]
"""Keys of code, the summed residuals under each, and their counts; all ``[keys]``, by key."""


class FormStatus(IntEnum):
    """What training says of an instruction form."""

    UNTRAINED = 0
    """No training row has it."""
    TRAINED = 1
    REFUSED = 2
    """Its blocks have no throughput to predict."""
    BORROWED = 3
    """No training row has it; its costs are those of another machine."""


ANSWER: Final = np.dtype(
    [
        *((name, np.float32) for name in ("cycles", "low", "high")),
        *((name, np.int32) for name in ("instructions", "untrained", "borrowed", "refused")),
    ]
)
LAYOUT: Final = Layout(
    records={"Answer": ANSWER, **records()},
    codes={"NodeShift": NodeShift.__members__, "FormStatus": FormStatus.__members__},
    names={"plain features": SIMULATION},
)
"""What this module exchanges with the library; see :mod:`nestor.cost.native.layout`."""

_FORESTS: Final = {"residual": 0, "spread": 1, "fine": 2}


@functools.cache
def _require_same_layout() -> None:
    check_layout(cost_library(), LAYOUT)


class LearnedSession(Simulator):
    """A simulator with what is learned of its errors."""

    def __init__(self, templates: Templates | None = None) -> None:
        super().__init__(templates)
        _require_same_layout()
        self._status_of: Callable[[Sequence[str]], NDArray[np.int8]] | None = None
        self._forms_with_status = 0

    def features(self, which: I64) -> F32:
        """Return :data:`nestor.cost.model.features.FEATURES` of kept blocks ``[n, features]``."""
        out = np.zeros((len(which), len(FEATURES)), dtype=np.float32)
        self._native.nestor_cost_features(
            self._session, pointer(which), ctypes.c_int64(len(which)), pointer(out)
        )
        return out

    def remember(self, which: I64, residuals: F32) -> None:
        """Remember how far the simulation of kept blocks was off, and nothing else.

        :param residuals: ln measured − ln simulated ``[which]``.
        """
        self._native.nestor_cost_remember(
            self._session, pointer(which), pointer(residuals), ctypes.c_int64(len(which))
        )

    def recall(self, which: I64) -> F32:
        """Return what is remembered of code like that of kept blocks ``[n, memory features]``."""
        out = np.zeros((len(which), BLOCK_MEMORY.itemsize // 4), dtype=np.float32)
        self._native.nestor_cost_recall(
            self._session, pointer(which), ctypes.c_int64(len(which)), pointer(out)
        )
        return out

    def residual_memory(self) -> ResidualMemory:
        """Return all that is remembered."""
        room = 0
        while True:
            keys, counts = np.zeros(room, dtype=np.uint32), np.zeros(room, dtype=np.uint32)
            sums = np.zeros(room, dtype=np.float32)
            count = self._native.nestor_cost_memory(
                self._session, pointer(keys), pointer(sums), pointer(counts), ctypes.c_int64(room)
            )
            if count == room:
                return keys, sums, counts
            room = count

    def set_residual_memory(self, memory: ResidualMemory) -> None:
        """Remember what :meth:`residual_memory` returned, and nothing else."""
        keys, sums, counts = memory
        self._native.nestor_cost_set_memory(
            self._session, pointer(keys), pointer(sums), pointer(counts), ctypes.c_int64(len(keys))
        )

    def set_bins(self, edges: F32, starts: NDArray[np.int32]) -> None:
        """Set where the bins of features begin.

        :param edges: thresholds, feature after feature, rising within each.
        :param starts: where the edges of each feature begin, and their number ``[features + 1]``.
        """
        self._native.nestor_cost_bins(
            self._session, pointer(edges), pointer(starts), ctypes.c_int32(len(starts) - 1)
        )

    def set_forest(self, quantity: Literal["residual", "spread", "fine"], forest: Forest) -> None:
        """Predict ``quantity`` by ``forest``."""
        self._native.nestor_cost_forest(
            self._session, ctypes.c_int32(_FORESTS[quantity]), pointer(forest.nodes),
            pointer(forest.values), pointer(forest.first), pointer(forest.depth),
            ctypes.c_int32(len(forest.depth)), ctypes.c_float(forest.base),
        )  # fmt: skip

    def residuals(self, features: F32) -> F32:
        """Return what the trees of the residual say of rows of features ``[n]``."""
        out = np.zeros(len(features), dtype=np.float32)
        self._native.nestor_cost_residuals(
            self._session, pointer(features), ctypes.c_int64(len(features)), pointer(out)
        )
        return out

    def calibrate(self, machine: int, factor: float, core: bool = True) -> None:
        """Predict for this machine of the model, with intervals wider by ``factor``.

        :param core: whether the residual is added to the simulation or stands alone.
        """
        self._native.nestor_cost_calibrate(
            self._session, ctypes.c_float(machine), ctypes.c_float(factor), ctypes.c_float(core)
        )

    def set_levels(
        self, levels: F32, reach: float, ordered: NDArray[np.uint8], grain: float
    ) -> None:
        """Move answers to the nearest of ``levels``, if that is within ``reach``: both in logs.

        :param ordered: whether blocks at a level are ordered by the forest ``fine`` ``[levels]``.
        :param grain: what the answers of that forest are rounded to.
        """
        self._native.nestor_cost_levels(
            self._session, pointer(levels), pointer(ordered), ctypes.c_int64(len(levels)),
            ctypes.c_float(reach), ctypes.c_float(grain),
        )  # fmt: skip

    def forget_answers(self) -> None:
        """Empty the cache of answers."""
        self._native.nestor_cost_forget_answers(self._session)

    def set_form_statuses(self, status_of: Callable[[Sequence[str]], NDArray[np.int8]]) -> None:
        """Count instructions by the :class:`FormStatus` of their forms.

        :param status_of: gives the statuses of forms by their names, of new ones too.
        """
        self._status_of = status_of
        statuses = np.ascontiguousarray(status_of(self.templates.forms), dtype=np.int8)
        self._forms_with_status = len(statuses)
        self._native.nestor_cost_form_statuses(
            self._session, pointer(statuses), ctypes.c_int64(len(statuses))
        )

    def predict(self, blocks: Sequence[bytes], core: CoreParameters) -> NDArray[np.void]:
        """Return an :data:`ANSWER` for each block ``[n]``; NaN for an undecodable one.

        Refused blocks have cycles all the same.

        :param core: the core that is set, to be widened by forms that are met for the first time.
        """
        data, offsets = joined(blocks)
        decoding = Decoding.of(len(blocks))
        answers = np.zeros(len(blocks), dtype=ANSWER)
        while True:
            if self._status_of is not None and len(self.templates.forms) > self._forms_with_status:
                self.set_form_statuses(self._status_of)
            undone = self._native.nestor_cost_predict(
                self._session, pointer(data), pointer(offsets), ctypes.c_int64(len(blocks)),
                *decoding.pointers(), pointer(answers),
            )  # fmt: skip
            if not undone or not self.add_missing_templates(blocks, decoding):
                return answers
            self.set_core(widened(core, self.templates))
