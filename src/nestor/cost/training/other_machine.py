"""Costs of instructions that were measured on another machine alone.

A model of one machine that never saw an opcode can take its latency, ports and slots from a like
machine, where a sweep of all instructions was measured. Such costs are a guess, better than that of
the instruction's category, and answers with them get intervals of their own (``opcode_intervals``).
"""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from nestor.cost.blocks.table import Table
from nestor.cost.core.fitting import FittingSettings, fit
from nestor.cost.core.parameters import CoreParameters, MachineSettings, starting_forms
from nestor.cost.core.simulator import I64, Simulator, widened
from nestor.cost.core.slow_forms import with_slow_forms
from nestor.cost.isa.template_layout import VARIANTS
from nestor.cost.isa.templates import Templates, opcode_of
from nestor.cost.model.trained_forms import TrainedForms


@dataclass(frozen=True)
class OtherMachine:
    """What rows of another machine say of instructions."""

    core: CoreParameters = field(repr=False)
    opcodes: frozenset[str]
    """Opcodes that its rows have."""

    def forms_for(self, templates: Templates) -> NDArray[np.int32]:
        """Return the costs of all forms ``[forms × VARIANTS, 8]``; new ones have starting values.

        :param templates: those that it was fitted with, or more.
        """
        return widened(self.core, templates).forms


def fit_other_machine(table: Table, templates: Templates, passes: int) -> OtherMachine:
    """Fit the costs of the instructions in a table of another machine's labels.

    Even one block counts: a sweep has only a few of each instruction, and these of nothing else.

    :param templates: those that the model is trained with; instructions that are new are added.
    """
    simulator = Simulator(templates)
    kept = np.flatnonzero(simulator.keep(table.blocks))
    core = CoreParameters(MachineSettings(), starting_forms(templates.categories()))
    core = with_slow_forms(simulator, core, kept, table.cycles, fewest=1)
    core = fit(
        simulator, core, kept, table.cycles, FittingSettings(passes=passes, fewest=1, machine=False)
    )
    return OtherMachine(core, opcodes_of(simulator, kept))


def opcodes_of(simulator: Simulator, kept: I64) -> frozenset[str]:
    """Return the opcodes of kept blocks."""
    numbers = {int(form) // VARIANTS for block in kept for form in simulator.forms(int(block))}
    return frozenset(opcode_of(simulator.templates.forms[number]) for number in numbers)


def with_costs_of(
    core: CoreParameters, templates: Templates, opcodes: TrainedForms, other: OtherMachine | None
) -> CoreParameters:
    """Return ``core`` with the costs of another machine for the opcodes that only that one has."""
    if other is None:
        return core
    names = (opcode_of(form) for form in templates.forms)
    taken = np.array([n in opcodes.borrowed and n not in opcodes.trained for n in names])
    forms = np.array(core.forms)
    places = np.repeat(taken, VARIANTS)
    forms[places] = other.forms_for(templates)[places]
    return CoreParameters(core.settings, forms)
