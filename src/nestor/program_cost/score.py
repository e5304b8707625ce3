"""Predicted cycles of a run as a score for searches: a sum over what was counted.

As when two builds are compared (:mod:`nestor.program_cost.compare`), what blocks compute is taken
in proportion to instructions, since how a block is priced hangs on where it is cut. Here an
instruction has the same price in every program, so that a build can be scored without another.
"""

from typing import Final

import numpy as np
import numpy.typing as npt

from nestor.events.table import EventTable
from nestor.processor import this_machine
from nestor.program_cost import penalties as machines
from nestor.program_cost.penalties import Penalties
from nestor.program_cost.quantities import chased_blocks, event_quantities
from nestor.program_cost.weights import FIRST, Weights

F64 = npt.NDArray[np.float64]

CYCLES_PER_INSTRUCTION: Final = 0.3
"""What an instruction computes, events apart: usual in the programs of docs/studies/programs.md."""


def usual_penalties() -> Penalties:
    """Return those of this machine that come with Nestor, or those of a recent server core."""
    here = this_machine()
    return machines.named(here if here in machines.packaged() else FIRST)


def cycles_of(table: EventTable, penalties: Penalties, weights: Weights) -> F64:
    """Return the predicted cycles of each block of a run ``[n]``."""
    events = event_quantities(table, penalties, chased_blocks(table))
    own: F64 = CYCLES_PER_INSTRUCTION * table.instructions_by_block()
    for name, cycles in events.items():
        own = own + weights.values[name] * cycles
    return own
