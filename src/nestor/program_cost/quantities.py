"""Sum a run up: what the core computes, and each kind of event in cycles of this machine.

All quantities are cycles if nothing were hidden by other work; the weights say what is.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from nestor.cost.contract import CostModel
from nestor.cost.isa.decoding import DecodeError
from nestor.cost.predict.single_pass import pass_cycles
from nestor.cost.trace.entries import straight
from nestor.events.errors import EventsError
from nestor.events.table import EventTable
from nestor.program_cost.apart import passes_apart
from nestor.program_cost.chains import Chain, chains
from nestor.program_cost.chases import follows_pointers
from nestor.program_cost.penalties import Penalties

F64 = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]

QUANTITIES: Final = (
    "compute",
    "recurrence",
    "taken",
    "mispredict",
    "l1",
    "l2",
    "llc",
    "chased",
    "code",
    "tlb",
    "rep",
)
"""``compute``: passes through chains, each after other code, and loops, see :func:`_of_loop`;
``recurrence``: what chains that are no loops would take longer if they were; ``chased``: misses of
loops that follow pointers, in all levels; the others are events times penalties."""
COMPUTED: Final = ("compute", "recurrence")
"""Those that the prices of blocks make."""
_HOT: Final = 0.9995
"""The share of all instructions whose blocks are priced; the others are scaled up from these."""
_WIDTH: Final = 3.0
"""Instructions a cycle of code for which the model has no answer."""
_WINDOW: Final = 512.0
"""Instructions that a core has in flight."""
_NOTHING: Final = b"\x90"
"""Stands for a body that cannot be priced."""
_REP_BYTES: Final = 32.0
"""That a repeated string instruction moves in a cycle."""
_REP_START: Final = 10.0
"""Cycles until it begins."""


_COUNTED_BY: Final = {
    "taken": "taken",
    "mispredict": "mispredicts",
    "l1": "l1_misses",
    "llc": "llc_misses",
    "code": "code_misses",
    "tlb": "tlb_misses",
}
"""The column without which a quantity cannot be told. (callgrind has no second level, whose misses
are those of its first.)"""


def uncounted(table: EventTable) -> list[str]:
    """Return the quantities that the source of a table does not count, and that cost nothing."""
    return [name for name, column in _COUNTED_BY.items() if not table.has(column)]


@dataclass(frozen=True)
class Quantities:
    """Quantities of each block of a run."""

    table: EventTable
    columns: Mapping[str, F64]
    """By name of :data:`QUANTITIES`, ``[n]``."""
    unanswered: float
    """The share of instructions in blocks for which the model has no answer."""

    def totals(self) -> F64:
        """Return the sums over the run, in the order of :data:`QUANTITIES`."""
        return np.array([self.columns[name].sum() for name in QUANTITIES])


def quantities(table: EventTable, model: CostModel, penalties: Penalties) -> Quantities:
    """Return the quantities of a run; events that its source lacks count nothing.

    :raises EventsError: if the run executed nothing.
    """
    executions, size = table.numbers("executions"), table.numbers("instructions")
    if not (executions * size).sum() > 0:
        raise EventsError("The table has no block that was executed; collect it again.")
    compute, recurrence, chased, unanswered = _throughput(table, model)
    computed = {"compute": compute, "recurrence": recurrence}
    return Quantities(table, computed | event_quantities(table, penalties, chased), unanswered)


def chased_blocks(table: EventTable) -> Flags:
    """Tell which blocks are of loops that follow pointers, as :func:`quantities` has them."""
    codes = table.words("code")
    chased = np.zeros(len(table), np.bool_)
    for chain in _hot_chains(table):
        if chain.repeats:
            body = _body([codes[row] for row in chain.rows])
            chased[list(chain.rows)] = follows_pointers(body or b"")
    return chased


def event_quantities(table: EventTable, penalties: Penalties, chased: Flags) -> dict[str, F64]:
    """Return the quantities of each block that events make, ``[n]`` by name.

    :param chased: blocks of loops that follow pointers ``[n]``.
    """
    executions = table.numbers("executions")

    def events(name: str) -> F64:
        return np.nan_to_num(table.numbers(name))

    l1, l2, llc = events("l1_misses"), events("l2_misses"), events("llc_misses")
    if not table.has("l2_misses"):  # callgrind has two levels: what misses the first, hits the last
        l2 = l1
    missed = {
        "l1": np.maximum(l1 - l2, 0) * max(penalties.l2 - penalties.l1, 0),
        "l2": np.maximum(l2 - llc, 0) * max(penalties.llc - penalties.l1, 0),
        "llc": llc * max(penalties.memory - penalties.l1, 0),
    }
    turns = np.array([kind == "repeats" for kind in table.words("exit")])
    return {
        "taken": events("taken") * penalties.taken_branch,
        "mispredict": (events("mispredicts") + events("indirect_mispredicts"))
        * penalties.mispredict,
        **{level: np.where(chased, 0.0, cycles) for level, cycles in missed.items()},
        "chased": np.where(chased, sum(missed.values()), 0.0),
        "code": events("code_misses") * penalties.l2,
        "tlb": events("tlb_misses") * penalties.page_walk,
        "rep": events("rep_bytes") / _REP_BYTES + np.where(turns, executions * _REP_START, 0),
    }


def _throughput(table: EventTable, model: CostModel) -> tuple[F64, F64, Flags, float]:
    """Return what the passes through each block compute, what recurrences add, which blocks are of
    loops that follow pointers, and the share of instructions without an answer.
    """
    executions, size = table.numbers("executions"), table.numbers("instructions")
    work = executions * size
    codes, exits = table.words("code"), table.words("exit")
    found = _hot_chains(table)
    bodies = [_body([codes[row] for row in chain.rows]) for chain in found]
    cycles, passes, waits = _priced(model, [body or _NOTHING for body in bodies])
    compute, recurrence = np.zeros(len(table)), np.zeros(len(table))
    chased = np.zeros(len(table), np.bool_)
    unanswered = 0.0
    for chain, body, repeated, single, wait in zip(
        found, bodies, cycles.tolist(), passes.tolist(), waits.tolist(), strict=True
    ):
        if body == b"":  # branches alone, which cost what a branch costs
            continue
        rows = np.array(chain.rows)
        length = size[rows].sum()
        if body is None or np.isnan(repeated):
            repeated = single = length / _WIDTH
            wait = 0.0
            unanswered += float(work[rows].sum())
        share = size[rows] / length  # of the chain's cycles, by instructions
        if chain.repeats:
            single = _of_loop(chain.turns * length, repeated, single)
            chased[rows] = follows_pointers(body or b"")
        else:
            recurrence[rows] = executions[rows] * share * wait
        compute[rows] = executions[rows] * share * single
    priced = np.zeros(len(table), np.bool_)
    for chain in found:
        priced[list(chain.rows)] = True
    string = np.array([kind == "repeats" for kind in exits])
    left = ~priced & ~string
    if work[priced].sum() > 0:  # the rest at the rate of what is priced
        compute[left] = work[left] * compute[priced].sum() / work[priced].sum()
    else:
        compute[left] = work[left] / _WIDTH
    return compute, recurrence, chased, unanswered / float(work.sum())


def _priced(model: CostModel, bodies: Sequence[bytes]) -> tuple[F64, F64, F64]:
    """Return the cycles of each body without end, those of a pass, and what a pass may wait for.

    Memory hands little from pass to pass in most of them, so each different code is priced once.
    """
    apart = [_apart(body) for body in bodies]
    different = {code: row for row, code in enumerate(dict.fromkeys([*bodies, *apart]))}
    cycles = pass_cycles(model, list(different))
    own, other = ([different[code] for code in codes] for codes in (bodies, apart))
    repeated = cycles.repeated[own]
    passes = np.fmin(cycles.single[own], cycles.single[other])
    return repeated, passes, np.fmin(repeated, cycles.repeated[other]) - passes


def _apart(body: bytes) -> bytes:
    try:
        return passes_apart(body)
    except (DecodeError, ValueError):  # it has a form that cannot be written otherwise
        return body


def _of_loop(length: float, repeated: float, single: float) -> float:
    """Return the cycles of a turn of a loop.

    A short loop waits for its own results only while nothing else can begin: as many entries of it
    as the core has room for run side by side.

    :param length: instructions from an entry to the end.
    :param repeated: cycles of a turn of a loop without end.
    :param single: cycles of a turn that waits for nothing.
    """
    return max(single, repeated / (1 + _WINDOW / length))


def _hot_chains(table: EventTable) -> list[Chain]:
    """Return the chains that are priced: of busy blocks, without repeated string instructions."""
    kept = _hot(table.numbers("executions") * table.numbers("instructions"))
    exits = table.words("exit")
    return [
        chain
        for chain in chains(table)
        if any(kept[row] for row in chain.rows) and exits[chain.rows[0]] != "repeats"
    ]


def _hot(work: F64) -> Flags:
    """Tell which blocks, the busiest first, make up nearly all of the run."""
    order = np.argsort(-work, kind="stable")
    before = np.cumsum(work[order]) - work[order]
    kept = np.zeros(len(work), np.bool_)
    kept[order] = before < _HOT * work.sum()
    return kept


def _body(codes: list[bytes]) -> bytes | None:
    """Return the code of blocks without what leaves them; None if it cannot be decoded."""
    try:
        return b"".join(piece for code in codes for piece in straight([code]))
    except DecodeError:
        return None
