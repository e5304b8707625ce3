"""The parameters of a simulated core: what the machine has, and what each instruction form costs.

The starting values are round numbers for an AMD Zen 5 core after AMD's "Software Optimization Guide
for the AMD Zen5 Microarchitecture" (publication 58455); :mod:`nestor.cost.core.fitting` replaces
those of the forms, and :mod:`nestor.cost.core.machine_fitting` those of the machine, by what the
labels say.
"""

from dataclasses import astuple, dataclass, field, fields
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from nestor.cost.isa.instruction_categories import CATEGORIES
from nestor.cost.isa.template_layout import LARGEST_WINDOW, VARIANTS

I32 = NDArray[np.int32]


def ports(*numbers: int) -> int:
    """Return the bit mask of some ports."""
    return sum(1 << number for number in numbers)


ALU: Final = ports(*range(6))
LOAD: Final = ports(6, 7, 8, 9)
STORE: Final = ports(8, 9)
FLOAT: Final = ports(12, 13, 14, 15)
FLOAT_STORE: Final = ports(16, 17)
DIVIDER: Final = ports(18)
FLOAT_DIVIDER: Final = ports(19)
PORT_GROUPS: Final = {
    "ALU": ALU, "load": LOAD, "store": STORE, "FP": FLOAT, "FP store": FLOAT_STORE,
    "divider": DIVIDER, "FP divider": FLOAT_DIVIDER,
}  # fmt: skip

PORT_CHOICES: Final = (
    *(ports(*range(k)) for k in range(1, 7)),
    *(ports(*range(6 - k, 6)) for k in range(1, 5)),
    ports(1), ports(1, 2), ports(12), ports(13), ports(14), ports(15), ports(12, 13),
    ports(14, 15), ports(13, 14), ports(12, 15), ports(12, 13, 14), FLOAT, FLOAT_STORE,
    ports(16), DIVIDER, FLOAT_DIVIDER, LOAD, STORE, ports(8),
)  # fmt: skip
"""The sets of ports that a form may use, for fitting."""


@dataclass(frozen=True)
class MachineSettings:
    """A core in whole cycles and whole slots; the fields are those of ``MachineParameters``."""

    dispatch_width: int = 8
    """Operations that enter the back end in a cycle."""
    retire_width: int = 8
    window: int = 448
    """Operations between dispatch and retirement."""
    load_latency: int = 4
    vector_load_latency: int = 6
    forward_latency: int = 6
    """From a store's data to a load of the same address."""
    vector_forward_latency: int = 10
    renamed_latency: int = 0
    """The same if memory renaming sees it (``renamed``)."""
    partial_penalty: int = 14
    """A load that needs a store's data and more waits until the store is written, then so long."""
    split_latency: int = 1
    """Extra cycles of an access that crosses a cache line."""
    page_penalty: int = 4
    """Extra cycles of an access that crosses a page."""
    load_ports: int = LOAD
    store_ports: int = STORE
    commit_width: int = 2
    """Stores that go to the cache in a cycle."""
    entry_ops: int = 8
    """Instructions in an entry of the operation cache; 0: its entries are not limiting."""
    instruction_budget: int = 250
    """Instructions to simulate: a block is repeated between 4 and 100 times."""
    renamed: int = 1
    """Loads that memory renaming gives a store's data: 0 none, 1 those whose address is written the
    same way and with unchanged registers, 2 those of the same address without an index, 3 all."""
    store_queue: int = 32
    line_commit: int = 0
    """Whether only stores to the same line go to the cache together."""
    indexed_forward_latency: int = 6
    """As ``forward_latency``, where the store or the load has an index register."""
    fuses_copies: int = 1
    """Whether a copy and simple arithmetic on the copy are one operation."""
    renames_vectors: int = 0
    """Whether memory renaming sees loads of vector registers."""
    renames_extending: int = 0
    """Whether it sees loads that widen what they read."""
    partial_constant_penalty: int = 14
    """As ``partial_penalty``, where the store is of an immediate; 0: such a load does not wait."""
    entry_bytes: int = 64
    """Aligned code that shares entries of the operation cache; a power of two."""
    free_entries: int = 2
    """Entries of such code that enter at once; with more of them, one enters in a cycle."""
    fine_variants: int = 2
    """What has parameters of its own: 1 large immediates, and x87 instructions of blocks that move
    the stack, 2 also ``lea`` with a large displacement; less in files that were written before."""
    bank_reads: int = 0
    """Loads of a cycle that one 4-byte bank of the first-level cache serves: 1, 2, or 0 for all."""

    def record(self) -> NDArray[np.void]:
        """Return the settings as a :data:`MACHINE` for the native core."""
        return np.array(astuple(self), dtype=MACHINE)


MACHINE: Final = np.dtype([(one.name, np.int32) for one in fields(MachineSettings)])


class FormParameters(NamedTuple):
    """What one variant of an instruction form costs."""

    slots: int
    """Of the dispatch width."""
    latency: int
    """Cycles from the last operand to the result, without a load's own."""
    ports: int
    """Bit mask of the ports that can execute it."""
    executions: int
    """How often one of them executes it."""
    second_ports: int
    second_executions: int
    busy: int
    """Cycles that the first port stays taken."""
    load_extra: int
    """Cycles on top of the machine's load latency."""


FIELDS: Final = FormParameters._fields
FORM: Final = np.dtype([(name, np.int32) for name in FIELDS])


@dataclass(frozen=True)
class CoreParameters:
    """A core, and what each instruction form costs on it."""

    settings: MachineSettings
    forms: I32 = field(repr=False)
    """``[forms × VARIANTS, 8]``; the columns are the fields of :class:`FormParameters`."""


_FORM_START: Final = {
    "mov": (1, 0, 0, 0),
    "load": (1, 0, 0, 0),
    "store": (1, 0, 0, 0),
    "nop": (1, 0, 0, 0),
    "shift": (1, 1, ports(0, 1, 2), 1),
    "multiply": (1, 3, ports(0, 1, 2), 1),
    "divide": (2, 10, DIVIDER, 6),
    "stack": (1, 0, 0, 0),
    "string": (8, 5, ALU, 1),
    "x87": (1, 5, ports(12, 13), 1),
    "vector-move": (1, 0, 0, 0),
    "vector-load": (1, 0, 0, 0),
    "vector-store": (1, 0, FLOAT_STORE, 1),
    "vector-logic": (1, 1, FLOAT, 1),
    "vector-integer": (1, 1, FLOAT, 1),
    "vector-multiply": (1, 3, ports(12, 15), 1),
    "float-add": (1, 2, ports(14, 15), 1),
    "float-multiply": (1, 3, ports(12, 13), 1),
    "float-divide": (1, 12, FLOAT_DIVIDER, 5),
    "shuffle": (1, 1, ports(13, 14), 1),
    "convert": (1, 4, ports(14, 15), 1),
    "transfer": (1, 3, FLOAT_STORE, 1),
    "locked": (4, 8, ALU, 1),
    "exchange": (2, 1, ALU, 1),
}
"""Slots, latency, ports and cycles that a port stays busy; else one cycle on any ALU."""


def starting_forms(categories: NDArray[np.int64]) -> I32:
    """Return unfitted parameters for forms of these categories (numbers), all variants alike."""
    rows = []
    for number in categories:
        slots, latency, mask, busy = _FORM_START.get(CATEGORIES[number], (1, 1, ALU, 1))
        count = 1 if mask else 0
        rows.append(FormParameters(slots, latency, mask, count, 0, 0, max(busy, 1), 0))
    return np.repeat(np.array(rows, dtype=np.int32).reshape(-1, len(FIELDS)), VARIANTS, axis=0)


def checked_core(core: CoreParameters) -> CoreParameters:
    """Return ``core`` if it can be simulated in bounded time and memory.

    :raises ValueError: if a number is out of its range.
    """
    s = core.settings
    limits = (
        (1, 64, (s.dispatch_width, s.retire_width, s.commit_width)),
        (1, LARGEST_WINDOW, (s.window, s.store_queue)),
        (0, 1000, (s.load_latency, s.vector_load_latency, s.forward_latency, s.renamed_latency,
                   s.vector_forward_latency, s.partial_penalty, s.split_latency, s.page_penalty,
                   s.indexed_forward_latency, s.partial_constant_penalty)),
        (0, 4096, (s.entry_ops,)),
        (1, 100_000, (s.instruction_budget,)),
        (16, 4096, (s.entry_bytes,)),
        (0, 64, (s.free_entries,)),
        (0, 2, (s.bank_reads, s.fine_variants)),
    )  # fmt: skip
    for least, most, values in limits:
        if any(not least <= value <= most for value in values):
            raise ValueError("a parameter of the machine is out of its range")
    if s.entry_bytes & (s.entry_bytes - 1):
        raise ValueError("the code of an entry is no power of two")
    if ((core.forms < np.array(_LEAST)) | (core.forms > np.array(_MOST))).any():
        raise ValueError("a parameter of an instruction form is out of its range")
    return core


_ANY_PORTS: Final = (1 << 31) - 1
_LEAST: Final = FormParameters(1, 0, 0, 0, 0, 0, 1, -100)
_MOST: Final = FormParameters(20_000, 100_000, _ANY_PORTS, 512, _ANY_PORTS, 512, 1000, 1000)
