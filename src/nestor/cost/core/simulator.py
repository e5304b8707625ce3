"""A native session: it decodes blocks, keeps them, and simulates them on a core.

The C interface is ``native/cost/FitApi.cpp``; :mod:`nestor.cost.model.session` adds what is
learned.
"""

import ctypes
import functools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from nestor.cost import start_state
from nestor.cost.core.parameters import FORM, MACHINE, CoreParameters, starting_forms
from nestor.cost.isa import template_layout
from nestor.cost.isa.template_layout import VARIANTS, DecodeStatus
from nestor.cost.isa.templates import Templates
from nestor.cost.native.layout import Layout, check_layout
from nestor.cost.native.library import load_library

F32 = NDArray[np.float32]
F64 = NDArray[np.float64]
I64 = NDArray[np.int64]

_OPERATION: Final = np.dtype(
    [
        *(
            (name, np.int32)
            for name in ("form", "length", "base", "index", "idiom", "read_count", "write_count")
        ),
        ("reads", np.int32, (10,)),
        ("writes", np.int32, (10,)),
    ]
)
LAYOUT: Final = Layout(
    records={"FormParameters": FORM, "MachineParameters": MACHINE, "OperationRecord": _OPERATION},
    codes={
        "StartState": {
            "FIRST_REGISTER": start_state.FIRST_REGISTER,
            "REGISTER_STEP": start_state.REGISTER_STEP,
            "STACK_POINTER": start_state.STACK_POINTER,
            "PAGE_FILLING": start_state.PAGE_FILLING,
        }
    },
)
"""What this module exchanges with the library; see :mod:`nestor.cost.native.layout`."""


@functools.cache
def cost_library() -> ctypes.CDLL:
    """Return the native library, built if need be and checked against Python's records.

    :raises NestorError: if it cannot be built, or the records differ.
    """
    library = load_library("cost")
    check_layout(library, template_layout.LAYOUT)
    check_layout(library, LAYOUT)
    library.nestor_cost_new.restype = ctypes.c_void_p
    library.nestor_cost_loss.restype = ctypes.c_double
    return library


def pointer(array: NDArray[Any]) -> ctypes.c_void_p:
    """Return the address of an array for the native side."""
    assert array.flags.c_contiguous
    return ctypes.c_void_p(array.ctypes.data)


def joined(blocks: Sequence[bytes]) -> tuple[NDArray[np.uint8], I64]:
    """Return the bytes of all blocks in a row and where each begins ``[n + 1]``."""
    offsets = np.zeros(len(blocks) + 1, dtype=np.int64)
    np.cumsum(np.fromiter(map(len, blocks), dtype=np.int64, count=len(blocks)), out=offsets[1:])
    return np.frombuffer(b"".join(blocks) or b"\0", dtype=np.uint8), offsets


@dataclass
class Decoding:
    """The result of decoding each block ``[n]``."""

    status: NDArray[np.int8]
    """A :class:`DecodeStatus`."""
    offset: NDArray[np.int32]
    """Where the instruction begins that decoding stopped at."""
    key: NDArray[np.uint64]
    """The key of the template that it needs, if one is missing."""

    @staticmethod
    def of(count: int) -> "Decoding":
        """Return room for ``count`` blocks."""
        return Decoding(
            np.zeros(count, dtype=np.int8),
            np.zeros(count, dtype=np.int32),
            np.zeros(count, dtype=np.uint64),
        )

    def pointers(self) -> tuple[ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p]:
        """Return the addresses that the native side writes to."""
        return pointer(self.status), pointer(self.offset), pointer(self.key)


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
    """Its result is 0 whatever it reads."""


class Simulator:
    """A native session: its templates, its core and the blocks that it keeps.

    Not safe for several threads at once.
    """

    def __init__(self, templates: Templates | None = None) -> None:
        self._native = cost_library()
        self._session = ctypes.c_void_p(self._native.nestor_cost_new())
        self.templates = templates or Templates()
        self.core: CoreParameters | None = None
        """What was set last; changes by :meth:`set_form` are not in it."""
        self.size = 0
        """Number of kept blocks."""
        for key, row in zip(self.templates.keys, self.templates.rows, strict=True):
            self._set_template(key, row)

    def __del__(self) -> None:
        if getattr(self, "_session", None):
            self._native.nestor_cost_free(self._session)

    def keep(self, blocks: Sequence[bytes]) -> NDArray[np.bool_]:
        """Decode ``blocks`` and keep them in place of those before; return which were decodable."""
        data, offsets = joined(blocks)
        decoding = Decoding.of(len(blocks))
        self.size = len(blocks)
        while True:
            self._native.nestor_cost_keep(
                self._session, pointer(data), pointer(offsets), ctypes.c_int64(len(blocks)),
                *decoding.pointers(),
            )  # fmt: skip
            if not self.add_missing_templates(blocks, decoding):
                return np.asarray(decoding.status == DecodeStatus.DECODED)
            if self.core is not None:
                self.set_core(widened(self.core, self.templates))

    def add_missing_templates(self, blocks: Sequence[bytes], decoding: Decoding) -> bool:
        """Describe the instructions that decoding stopped at; return whether there were any."""
        stopped = np.flatnonzero(decoding.status == DecodeStatus.UNKNOWN_KEY).tolist()
        examples = {int(decoding.key[i]): i for i in stopped}
        for key, i in examples.items():
            self._set_template(key, self.templates.add(key, blocks[i][decoding.offset[i] :]))
        return bool(examples)

    def _set_template(self, key: int, row: NDArray[np.void]) -> None:
        self._native.nestor_cost_template(self._session, ctypes.c_uint64(key), pointer(row))

    def set_core(self, core: CoreParameters) -> None:
        """Simulate on ``core`` from now on; it must have the forms of all templates."""
        self.core = core
        machine, forms = core.settings.record(), np.ascontiguousarray(core.forms, dtype=np.int32)
        self._native.nestor_cost_machine(
            self._session, pointer(machine), pointer(forms), ctypes.c_int64(len(forms))
        )

    def set_form(self, number: int, row: NDArray[np.int32]) -> None:
        """Change the parameters of one form's variant.

        :param row: one row of :attr:`CoreParameters.forms`.
        """
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

    def uses(self, rows: I64) -> dict[int, list[int]]:
        """Return the kept blocks out of ``rows`` that have each parameter set (:meth:`forms`)."""
        found: dict[int, list[int]] = {}
        for block in rows.tolist():
            for number in set(self.forms(block).tolist()):
                found.setdefault(number, []).append(block)
        return found

    def operations(self, block: int) -> tuple[Operation, ...]:
        """Return the decoded instructions of a kept block."""
        found = []
        record = np.zeros((), dtype=_OPERATION)
        for number in range(len(self.forms(block))):
            self._native.nestor_cost_op(
                self._session, ctypes.c_int64(block), ctypes.c_int32(number), pointer(record)
            )
            found.append(
                Operation(
                    form=int(record["form"]),
                    length=int(record["length"]),
                    reads=tuple(record["reads"][: record["read_count"]].tolist()),
                    writes=tuple(record["writes"][: record["write_count"]].tolist()),
                    base=int(record["base"]),
                    index=int(record["index"]),
                    idiom=bool(record["idiom"]),
                )
            )
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
        """Return the summed absolute log error of kept blocks ``which``.

        :param log_cycles: logarithms of the labels ``[which]``.
        :param current: errors of the parameters to beat ``[which]``; once they cannot be beaten
            the sum is given up.
        :param errors: where the errors go ``[which]``.
        :return: the sum, or infinity if it was given up.
        """
        return float(
            self._native.nestor_cost_loss(
                self._session, pointer(which), pointer(log_cycles), ctypes.c_int64(len(which)),
                pointer(current) if current is not None else None, pointer(errors),
            )
        )  # fmt: skip


def widened(core: CoreParameters, templates: Templates) -> CoreParameters:
    """Return ``core`` with starting values for the forms that ``templates`` have in addition."""
    present = len(core.forms) // VARIANTS
    extra = starting_forms(templates.categories()[present:])
    return CoreParameters(core.settings, np.concatenate([core.forms, extra]))
