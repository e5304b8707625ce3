"""Starting values of forms that take far more cycles than their category says.

Fitting changes a parameter by a step at a time and counts an error of a factor of e as any larger
one, so it cannot find that an instruction takes fifty cycles where its category takes one. What
microcode does fills the front end, so the cycles that are missing become slots of dispatch.
"""

from collections import defaultdict

import numpy as np

from nestor.cost.core.parameters import CoreParameters, FormParameters
from nestor.cost.core.simulator import F64, I64, Simulator
from nestor.cost.isa.template_layout import STACK_VARIANTS

_FAR: float = float(np.e)
"""A label so many times the simulated cycles shows a form that is slow."""
_LEAST = 12.0
"""Missing cycles that no chain through memory explains."""
_MOST_SLOTS = 20_000


def with_slow_forms(
    simulator: Simulator, core: CoreParameters, rows: I64, cycles: F64, fewest: int = 4
) -> CoreParameters:
    """Return ``core`` with more slots for the forms that explain labels far above the simulation.

    Of such a block the form is taken to be slow that the fewest blocks have; a form is slow if the
    median of all blocks where it is the rarest one says so.

    :param rows: numbers of the kept blocks to look at.
    :param cycles: labels of all kept blocks.
    :param fewest: blocks where it is the rarest that a form needs to be taken as slow: one may be
        slow for its data.
    """
    simulator.set_core(core)
    simulated = simulator.rates(rows).astype(np.float64)
    of_block = [simulator.forms(int(block)) // STACK_VARIANTS for block in rows]
    uses: dict[int, int] = defaultdict(int)
    for forms in of_block:
        for form in set(forms.tolist()):
            uses[form] += 1
    ratios: dict[int, list[float]] = defaultdict(list)
    missing: dict[int, list[float]] = defaultdict(list)
    for forms, block, found in zip(of_block, rows.tolist(), simulated.tolist(), strict=True):
        rarest = min(forms.tolist(), key=lambda form: (uses[form], form))
        ratios[rarest].append(cycles[block] / max(found, 0.05))
        missing[rarest].append((cycles[block] - found) / int((forms == rarest).sum()))
    changed = np.array(core.forms)
    for form, of_form in ratios.items():
        if len(of_form) < fewest or np.median(of_form) < _FAR or np.median(missing[form]) < _LEAST:
            continue
        slots = round(float(np.median(missing[form])) * core.settings.dispatch_width)
        place = slice(form * STACK_VARIANTS, (form + 1) * STACK_VARIANTS)
        changed[place, FormParameters._fields.index("slots")] = min(max(slots, 1), _MOST_SLOTS)
    return CoreParameters(core.settings, changed)
