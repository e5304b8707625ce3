"""An analytical bound: no block is faster than its busiest ports, its longest chain, its front end.

The classic model of throughput (as in Abel and Reineke, "uiCA", ICS 2022, and "Facile", 2023, in
their simplest form). Latencies, micro-operations and ports of each instruction code are LLVM's
own, read once through llvm-mca, not fitted; memory is taken to answer from the first-level cache,
and stores hand nothing to later loads.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, ClassVar, Final

import numpy as np
from numpy.typing import NDArray

from nestor.compiler.toolchain import find
from nestor.cost.baselines import rescaled
from nestor.cost.baselines.rescaled import Curve
from nestor.cost.contract import Prediction
from nestor.cost.isa.decoding import Instruction, decode_or_nothing
from nestor.cost.llvm_tools import mca
from nestor.progress import Progress, silent

F64 = NDArray[np.float64]

DISPATCH_WIDTH: Final = 8.0
"""Micro-operations that Zen 5 dispatches in a cycle."""
WIDENED: Final = MappingProxyType(
    {"Zn4ALU": 4 / 6, "Zn4AGU": 3 / 4, "Zn4LSU": 3 / 4, "Zn4Load": 3 / 4, "Zn4Store": 1 / 2}
)
"""What Zen 5 has more of than LLVM 22 tells, which schedules znver5 by the ports of Zen 4: six
ALUs, four address units, four loads or two stores a cycle (AMD, Software Optimization Guide for
the Zen 5 microarchitecture)."""
_LOAD_LATENCY: Final = {False: 5.0, True: 8.0}
"""Cycles that LLVM adds for an operand in memory, by whether it goes to a vector register."""
_PASSES: Final = (3, 7)
"""The chain's growth is measured between the ends of these passes through the block."""
_FLAGS: Final = "<flags>"


@dataclass(frozen=True)
class Form:
    """LLVM's entry for instructions of one code and one use of memory."""

    latency: float
    micro_ops: float
    ports: Mapping[str, float]
    """Cycles of each port, spread evenly over those that can take it."""


_UNKNOWN_FORM: Final = Form(1.0, 1.0, {})


@dataclass(frozen=True)
class Bounds:
    """The three bounds of blocks in cycles, each ``[n]``; NaN where a block cannot be decoded."""

    ports: F64
    chain: F64
    front_end: F64

    @property
    def cycles(self) -> F64:
        """The largest."""
        largest: F64 = np.maximum(np.maximum(self.ports, self.chain), self.front_end)
        return largest


@dataclass(frozen=True)
class BoundModel:
    """The largest of the three bounds, times what a curve makes of it."""

    forms: Mapping[str, Form] | None = None
    """By :func:`form_key`; None: read from LLVM each time. A form that is not there is simple."""
    curve: Curve | None = None
    """None: the bound as it is, without an interval."""
    kind: ClassVar[str] = "bound"

    def predict(self, blocks: Sequence[bytes]) -> Prediction:
        """Return the cycles of ``blocks``; NaN where one is empty or cannot be decoded.

        :raises NestorError: if forms are needed and there is no LLVM with llvm-mca.
        """
        decoded = [decode_or_nothing(block) for block in blocks]
        forms = forms_of(decoded) if self.forms is None else self.forms
        return rescaled.prediction(self.curve, bounds(decoded, forms).cycles)

    def contents(self) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
        """Return the arrays and the description of the model's file."""
        forms = {
            code: [form.latency, form.micro_ops, dict(form.ports)]
            for code, form in (self.forms or {}).items()
        }
        return dict(rescaled.contents(self.curve)), {"forms": forms}

    @staticmethod
    def restore(arrays: Mapping[str, NDArray[Any]], description: Mapping[str, Any]) -> "BoundModel":
        """Return the model of a file's contents.

        :raises ValueError: if they do not fit together.
        """
        forms = {
            str(code): Form(
                _finite(latency), _finite(micro_ops), {p: _finite(use) for p, use in ports.items()}
            )
            for code, (latency, micro_ops, ports) in description["forms"].items()
        }
        return BoundModel(forms, rescaled.restore(arrays))


def fit(blocks: Sequence[bytes], cycles: F64, progress: Progress = silent) -> BoundModel:
    """Return the bound with LLVM's forms and a curve fitted to the measured ``cycles`` ``[n]``.

    :raises NestorError: if there is no LLVM with llvm-mca, or too few blocks.
    """
    decoded = [decode_or_nothing(block) for block in blocks]
    forms = forms_of(decoded, progress)
    return BoundModel(forms, rescaled.fit(bounds(decoded, forms).cycles, cycles))


def forms_of(
    decoded: Iterable[Sequence[Instruction]], progress: Progress = silent
) -> dict[str, Form]:
    """Return LLVM's form of every kind of instruction in ``decoded``, each from one example.

    :raises NestorError: if there is no LLVM with llvm-mca.
    """
    examples: dict[str, bytes] = {}
    for block in decoded:
        for instruction in block:
            examples.setdefault(form_key(instruction), instruction.bytes)
    answers = mca.resources(find(), list(examples.values()), progress=progress)
    return {
        code: Form(answer.latency, answer.micro_ops, answer.usage)
        for code, answer in zip(examples, answers, strict=True)
        if answer is not None
    }


def form_key(instruction: Instruction) -> str:
    """Return what an instruction's form goes by: its code, and how it uses memory."""
    return instruction.code + "".join(f" {m.access}" for m in instruction.memory)


def bounds(decoded: Sequence[Sequence[Instruction]], forms: Mapping[str, Form]) -> Bounds:
    """Return the bounds of blocks; an empty one has none."""
    pressure = _Pressure(forms)
    found = np.full((len(decoded), 3), np.nan)
    for row, block in enumerate(decoded):
        if block:
            micro_ops = sum(forms.get(form_key(i), _UNKNOWN_FORM).micro_ops for i in block)
            found[row] = pressure.of(block), chain(block, forms), micro_ops / DISPATCH_WIDTH
    return Bounds(*found.T)


def chain(block: Sequence[Instruction], forms: Mapping[str, Form]) -> float:
    """Return the cycles that a repeated block's dependencies through registers and flags cost.

    The growth, from pass to pass, of the time at which the last value is ready when every
    instruction starts as soon as what it reads is there.
    """
    steps = [_step(instruction, forms) for instruction in block]
    ready: dict[str, float] = {}
    first = last = 0.0
    for done in range(1, _PASSES[1] + 1):
        for early, late, address_latency, latency, writes in steps:
            time = max((ready.get(r, 0.0) for r in early), default=0.0) + address_latency
            time = max(time, max((ready.get(r, 0.0) for r in late), default=0.0) + latency)
            for register in writes:
                ready[register] = time
        if done == _PASSES[0]:
            first = max(ready.values(), default=0.0)
    last = max(ready.values(), default=0.0)
    return (last - first) / (_PASSES[1] - _PASSES[0])


_Step = tuple[tuple[str, ...], tuple[str, ...], float, float, tuple[str, ...]]


def _step(instruction: Instruction, forms: Mapping[str, Form]) -> _Step:
    """Return what is read for addresses, what else, latencies from both, and what is written."""
    latency = forms.get(form_key(instruction), _UNKNOWN_FORM).latency
    loads = [m for m in instruction.memory if m.access != "write"]
    address = {r for m in loads for r in (m.base, m.index) if r}
    vector = any(r.startswith("zmm") for r in instruction.writes)
    rest = max(1.0, latency - _LOAD_LATENCY[vector]) if loads else latency
    data = (*(r for r in instruction.reads if r not in address), *instruction.merges)
    flags = (_FLAGS,) if instruction.flags_read else ()
    written = (*instruction.writes, *((_FLAGS,) if instruction.flags_written else ()))
    if instruction.mnemonic in ("push", "pop", "call", "ret"):
        # The stack engine of the front end moves the stack pointer.
        written = tuple(r for r in written if r != "rsp")
    return tuple(address), (*data, *flags), latency, rest, written


class _Pressure:
    """The bound by ports: for every set of ports, the work that only it can take.

    Work that fits on the ports S loads every set that holds S; no set of ports does more than one
    cycle of work a port and cycle.
    """

    def __init__(self, forms: Mapping[str, Form]) -> None:
        work = {code: _domains(form.ports) for code, form in forms.items()}
        sets = sorted({ports for use in work.values() for ports in use}, key=sorted)
        self._vectors = {
            code: np.array([sum(c for p, c in use.items() if p <= s) / len(s) for s in sets])
            for code, use in work.items()
        }
        self._nothing = np.zeros(len(sets))

    def of(self, block: Sequence[Instruction]) -> float:
        """Return the bound of a block in cycles."""
        total = sum((self._vectors.get(form_key(i), self._nothing) for i in block), self._nothing)
        return float(total.max(initial=0.0))


def _domains(ports: Mapping[str, float]) -> dict[frozenset[str], float]:
    """Return an instruction's cycles by the set of like ports that they are spread over."""
    by_domain: dict[str, dict[str, float]] = {}
    for port, cycles in ports.items():
        domain = port.split(".")[0].rstrip("0123456789")
        by_domain.setdefault(domain, {})[port] = cycles * WIDENED.get(domain, 1.0)
    return {frozenset(used): sum(used.values()) for used in by_domain.values()}


def _finite(value: Any) -> float:
    number = float(value)
    if not (math.isfinite(number) and number >= 0):
        raise ValueError("a form has no number where one belongs")
    return number
