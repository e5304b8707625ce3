"""The native side as Python sees it: decode blocks, keep them, and simulate them on a core."""

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nestor.compiler.native_library import load_library
from nestor.cost.encoding import Templates
from nestor.cost.features import FEATURES, MEMORY_FEATURES
from nestor.cost.forest import Forest
from nestor.cost.machine import VARIANTS, CoreParameters, starting_forms

F32 = NDArray[np.float32]
F64 = NDArray[np.float64]
I64 = NDArray[np.int64]


def pointer(array: NDArray[Any]) -> ctypes.c_void_p:
    """Return the address of an array for the native side."""
    assert array.flags.c_contiguous
    return ctypes.c_void_p(array.ctypes.data)


def joined(blocks: Sequence[bytes]) -> tuple[NDArray[np.uint8], I64]:
    """Return the bytes of all blocks in a row and where each begins, [n + 1]."""
    offsets = np.zeros(len(blocks) + 1, dtype=np.int64)
    np.cumsum(np.fromiter(map(len, blocks), dtype=np.int64, count=len(blocks)), out=offsets[1:])
    return np.frombuffer(b"".join(blocks) or b"\0", dtype=np.uint8), offsets


@dataclass(frozen=True)
class Operation:
    """One instruction as the native side decoded it; registers by their native numbers."""

    form: int
    length: int
    reads: tuple[int, ...]
    writes: tuple[int, ...]
    base: int
    index: int
    idiom: bool
    """It gives 0 whatever it reads."""


class Simulator:
    """A native session: its templates, its core and the blocks that it keeps.

    Not safe for several threads at once.
    """

    def __init__(self, templates: Templates | None = None) -> None:
        self._native = load_library("cost")
        self._native.nestor_cost_new.restype = ctypes.c_void_p
        self._native.nestor_cost_loss.restype = ctypes.c_double
        self._session = ctypes.c_void_p(self._native.nestor_cost_new())
        self.templates = templates or Templates()
        self.core: CoreParameters | None = None
        """What was set last; changes by :meth:`set_form` are not in it."""
        self.size = 0
        """Number of kept blocks."""
        for key, row in zip(self.templates.keys, self.templates.rows, strict=True):
            self._teach(key, row)

    def __del__(self) -> None:
        if getattr(self, "_session", None):
            self._native.nestor_cost_free(self._session)

    def keep(self, blocks: Sequence[bytes]) -> NDArray[np.bool_]:
        """Decode ``blocks`` and keep them in place of those before; say which were decodable."""
        data, offsets = joined(blocks)
        status = np.zeros(len(blocks), dtype=np.int8)
        where = np.zeros(len(blocks), dtype=np.int32)
        keys = np.zeros(len(blocks), dtype=np.uint64)
        self.size = len(blocks)
        while True:
            self._native.nestor_cost_keep(
                self._session, pointer(data), pointer(offsets), ctypes.c_int64(len(blocks)),
                pointer(status), pointer(where), pointer(keys),
            )  # fmt: skip
            examples = {int(keys[i]): i for i in np.flatnonzero(status == 1).tolist()}
            if not examples:
                return np.asarray(status == 0)
            for key, i in examples.items():
                self._teach(key, self.templates.learn(key, blocks[i][where[i] :]))
            if self.core is not None:
                self.set_core(widened(self.core, self.templates))

    def _teach(self, key: int, row: NDArray[np.int32]) -> None:
        self._native.nestor_cost_template(self._session, ctypes.c_uint64(key), pointer(row))

    def set_core(self, core: CoreParameters) -> None:
        """Simulate on ``core`` from now on; it must know the forms of all templates."""
        self.core = core
        settings, forms = core.settings.row(), np.ascontiguousarray(core.forms, dtype=np.int32)
        self._native.nestor_cost_machine(
            self._session, pointer(settings), pointer(forms), ctypes.c_int64(len(forms))
        )

    def set_form(self, number: int, row: NDArray[np.int32]) -> None:
        """Change the parameters of one form's variant."""
        self._native.nestor_cost_set_form(self._session, ctypes.c_int64(number), pointer(row))

    def forms(self, block: int) -> NDArray[np.int32]:
        """Return form × VARIANTS + variant of each instruction of a kept block."""
        out = np.zeros(64, dtype=np.int32)
        while True:
            count = self._native.nestor_cost_forms(
                self._session, ctypes.c_int64(block), pointer(out), ctypes.c_int32(len(out))
            )
            if count <= len(out):
                return out[:count].copy()
            out = np.zeros(count, dtype=np.int32)

    def operations(self, block: int) -> tuple[Operation, ...]:
        """Return the decoded instructions of a kept block."""
        found = []
        for number in range(len(self.forms(block))):
            out = np.zeros(40, dtype=np.int64)
            self._native.nestor_cost_op(
                self._session, ctypes.c_int64(block), ctypes.c_int32(number), pointer(out)
            )
            values = out.tolist()
            reads, writes = values[20 : 20 + values[2]], values[30 : 30 + values[3]]
            found.append(
                Operation(values[0], values[14], tuple(reads), tuple(writes), values[4],
                          values[5], bool(values[11]))
            )  # fmt: skip
        return tuple(found)

    def rates(self, which: I64 | None = None) -> F32:
        """Return the simulated cycles of kept blocks (all if None), −1 for an undecodable one."""
        which = np.arange(self.size, dtype=np.int64) if which is None else which
        out = np.zeros(len(which), dtype=np.float32)
        self._native.nestor_cost_rates(
            self._session, pointer(which), ctypes.c_int64(len(which)), pointer(out)
        )
        return out

    def loss(self, which: I64, log_cycles: F64, current: F64 | None, errors: F64) -> float:
        """Return the summed absolute log error, or infinity once ``current`` cannot be beaten."""
        return float(
            self._native.nestor_cost_loss(
                self._session, pointer(which), pointer(log_cycles), ctypes.c_int64(len(which)),
                pointer(current) if current is not None else None, pointer(errors),
            )
        )  # fmt: skip

    def features(self, which: I64) -> F32:
        """Return :data:`nestor.cost.features.FEATURES` of kept blocks, [n, features]."""
        out = np.zeros((len(which), len(FEATURES)), dtype=np.float32)
        self._native.nestor_cost_features(
            self._session, pointer(which), ctypes.c_int64(len(which)), pointer(out)
        )
        return out

    def remember(self, which: I64, residuals: F32) -> None:
        """Remember how far the simulation of kept blocks was off, and nothing else."""
        self._native.nestor_cost_remember(
            self._session, pointer(which), pointer(residuals), ctypes.c_int64(len(which))
        )

    def recall(self, which: I64) -> F32:
        """Return what is remembered of code like that of kept blocks, [n, MEMORY_FEATURES]."""
        out = np.zeros((len(which), len(MEMORY_FEATURES)), dtype=np.float32)
        self._native.nestor_cost_recall(
            self._session, pointer(which), ctypes.c_int64(len(which)), pointer(out)
        )
        return out

    def memory(self) -> tuple[NDArray[np.uint32], F32, NDArray[np.uint32]]:
        """Return keys, summed residuals and counts of what is remembered, by key."""
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

    def set_memory(self, keys: NDArray[np.uint32], sums: F32, counts: NDArray[np.uint32]) -> None:
        """Remember what :meth:`memory` returned."""
        self._native.nestor_cost_set_memory(
            self._session, pointer(keys), pointer(sums), pointer(counts), ctypes.c_int64(len(keys))
        )

    def set_bins(self, edges: F32, starts: NDArray[np.int32]) -> None:
        """Set where the bins of features begin: those of feature f are edges[starts[f]:][:…]."""
        self._native.nestor_cost_bins(
            self._session, pointer(edges), pointer(starts), ctypes.c_int32(len(starts) - 1)
        )

    def set_forest(self, which: int, forest: Forest) -> None:
        """Use ``forest`` for the residual (0) or the spread (1)."""
        self._native.nestor_cost_forest(
            self._session, ctypes.c_int32(which), pointer(forest.nodes), pointer(forest.values),
            pointer(forest.first), pointer(forest.depth), ctypes.c_int32(len(forest.depth)),
            ctypes.c_float(forest.base),
        )  # fmt: skip

    def residuals(self, features: F32) -> F32:
        """Return what the trees of the residual say of rows of features, [n]."""
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

    def set_levels(self, levels: F32, reach: float) -> None:
        """Move answers to the nearest of ``levels``, if that is within ``reach``: both in logs."""
        self._native.nestor_cost_levels(
            self._session, pointer(levels), ctypes.c_int64(len(levels)), ctypes.c_float(reach)
        )

    def forget_answers(self) -> None:
        """Empty the cache of answers."""
        self._native.nestor_cost_forget_answers(self._session)

    def predict(self, blocks: Sequence[bytes], core: CoreParameters) -> F32:
        """Return cycles, low and high of each block, [n, 3]; NaN for an undecodable one.

        :param core: the core that is set, to be widened by forms that were unknown until now.
        """
        data, offsets = joined(blocks)
        status = np.zeros(len(blocks), dtype=np.int8)
        where = np.zeros(len(blocks), dtype=np.int32)
        keys = np.zeros(len(blocks), dtype=np.uint64)
        answers = np.zeros((len(blocks), 3), dtype=np.float32)
        while True:
            bad = self._native.nestor_cost_predict(
                self._session, pointer(data), pointer(offsets), ctypes.c_int64(len(blocks)),
                pointer(status), pointer(where), pointer(keys), pointer(answers),
            )  # fmt: skip
            unknown = {int(keys[i]): i for i in np.flatnonzero(status == 1).tolist()} if bad else {}
            if not unknown:
                return answers
            for key, i in unknown.items():
                self._teach(key, self.templates.learn(key, blocks[i][where[i] :]))
            self.set_core(widened(core, self.templates))


def widened(core: CoreParameters, templates: Templates) -> CoreParameters:
    """Return ``core`` with starting values for the forms that it does not know yet."""
    known = len(core.forms) // VARIANTS
    extra = starting_forms(templates.categories()[known:])
    return CoreParameters(core.settings, np.concatenate([core.forms, extra]))
