"""What of another machine's costs holds on this one, where few labels say so.

A fit that starts from another machine's core has a few labels for most forms, and none for many.
Steps from the other machine's costs then end wherever those few labels let them. So costs that many
forms share are tried as a whole first: of all forms of one mnemonic together, and those that are
usual for a form's category. Variants without a label follow those of the same form that have some.
What a full or empty x87 stack costs, from nothing to four hundred cycles, is not taken over at all.
"""

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from nestor.cost.core.parameters import I32
from nestor.cost.core.simulator import F64, I64, Simulator
from nestor.cost.isa.template_layout import STACK_VARIANTS, VARIANTS

_SHARED = 0.002
"""Log error of a block that costs may lose for being those of many forms."""

Uses = Mapping[int, Sequence[int]]
"""Blocks of each parameter set that labels have."""


def families(uses: Uses, simulator: Simulator) -> Iterator[list[int]]:
    """Yield the parameter sets of several forms with one mnemonic, the most frequent first.

    Forms with and without a memory operand are apart.
    """
    mnemonics = simulator.templates.mnemonics()
    names = simulator.templates.forms
    found: dict[tuple[int, bool, int], list[int]] = {}
    for number in uses:
        form, variant = divmod(number, VARIANTS)
        key = int(mnemonics[form]), names[form].endswith(" mem"), variant // STACK_VARIANTS
        found.setdefault(key, []).append(number)
    order = sorted(found, key=lambda key: (-sum(len(uses[n]) for n in found[key]), key))
    return (found[key] for key in order if len({n // VARIANTS for n in found[key]}) > 1)


def forget_stack_faults(simulator: Simulator, forms: I32, uses: Uses, fewest: int) -> None:
    """Let instructions of blocks that move the x87 stack cost what is usual, if labels are few.

    :param fewest: labels that are enough to keep what the fit started from.
    """
    categories = simulator.templates.categories()
    for category in np.unique(categories):
        members = np.flatnonzero(categories == category) * VARIANTS
        for variant in range(VARIANTS - STACK_VARIANTS, VARIANTS):
            numbers = (members + variant).tolist()
            few = [number for number in numbers if len(uses.get(number, ())) < fewest]
            forms[few] = usual_costs(forms, categories, numbers[0])
            _set(simulator, few, forms[few])


def usual_costs(forms: I32, categories: I64, number: int) -> NDArray[np.int32]:
    """Return what most forms of the category cost, in the variant of the parameter set."""
    form, variant = divmod(number, VARIANTS)
    alike = np.flatnonzero(categories == categories[form]) * VARIANTS + variant
    rows, counts = np.unique(forms[alike], axis=0, return_counts=True)
    usual: NDArray[np.int32] = rows[counts.argmax()]
    return usual


def take_shared(
    simulator: Simulator,
    forms: I32,
    numbers: list[int],
    blocks: I64,
    labels: F64,
    shared: Sequence[NDArray[np.int32]],
) -> None:
    """Give all ``numbers`` the best of the ``shared`` costs, unless their own explain more.

    :param blocks: those that have one of ``numbers``.
    :param labels: logarithms of their cycles.
    """
    errors = np.zeros(len(blocks))
    own = forms[numbers]
    least = simulator.loss(blocks, labels, None, errors) + _SHARED * len(blocks)
    best = own
    for row in shared:
        _set(simulator, numbers, np.broadcast_to(row, own.shape))
        loss = simulator.loss(blocks, labels, None, errors)
        if loss < least:
            least, best = loss, np.broadcast_to(row, own.shape)
    forms[numbers] = best
    _set(simulator, numbers, forms[numbers])


def fill_variants(simulator: Simulator, forms: I32, uses: Uses) -> None:
    """Give parameter sets without labels the costs of the form's most frequent one."""
    labelled: dict[int, list[int]] = {}
    for number in uses:
        labelled.setdefault(number // VARIANTS, []).append(number)
    for form, numbers in labelled.items():
        for number in range(form * VARIANTS, (form + 1) * VARIANTS):
            if number not in uses:
                half = [
                    n for n in numbers if n // STACK_VARIANTS == number // STACK_VARIANTS
                ] or numbers
                forms[number] = forms[max(half, key=lambda n: (len(uses[n]), -n))]
                simulator.set_form(number, forms[number])


def _set(simulator: Simulator, numbers: list[int], rows: I32) -> None:
    for number, row in zip(numbers, rows, strict=True):
        simulator.set_form(number, np.ascontiguousarray(row))
