"""A fit that starts from another machine's costs, with few labels of this one."""

import numpy as np
import pytest

from nestor.cost.core.fitting import FittingSettings, fit
from nestor.cost.core.parameters import I32, CoreParameters, MachineSettings, starting_forms
from nestor.cost.core.simulator import Simulator
from nestor.cost.core.transfer import (
    families,
    fill_variants,
    forget_stack_faults,
    take_shared,
    usual_costs,
)
from nestor.cost.isa.template_layout import VARIANTS

CHAINS = tuple(
    bytes.fromhex(code)
    for code in ("0fafc3", "480fafc3", "660fafc3", "6bc305", "0fafc0", "480fafc0")  # imul
)
LOADS = ("d9c0", "d9c0ddd9")  # fld st(0), which moves the x87 stack; fld st(0), fstp st(1)
LATENCY = 1


def core_of(simulator: Simulator, forms: I32) -> CoreParameters:
    core = CoreParameters(MachineSettings(), forms)
    simulator.set_core(core)
    return core


@pytest.fixture
def multiplied() -> tuple[Simulator, I32]:
    simulator = Simulator()
    assert simulator.keep(CHAINS).all()
    return simulator, starting_forms(simulator.templates.categories())


def test_forms_of_one_mnemonic_are_a_family(multiplied: tuple[Simulator, I32]) -> None:
    simulator, _ = multiplied
    simulator.keep([*CHAINS, bytes.fromhex("0faf03"), bytes.fromhex("90")])
    found = list(families(simulator.uses(np.arange(len(CHAINS) + 2)), simulator))
    names = {simulator.templates.forms[number // VARIANTS] for number in found[0]}
    assert len(found) == 1  # that with a memory operand is alone, and so is nop
    assert len(names) == 4
    assert not any(name.endswith(" mem") for name in names)


@pytest.mark.parametrize(("truth", "taken"), [(3, True), (9, False)])
def test_shared_costs_are_taken_unless_own_ones_explain_more(
    multiplied: tuple[Simulator, I32], truth: int, taken: bool
) -> None:
    simulator, forms = multiplied
    number = int(simulator.forms(0)[0])
    shared = forms[number].copy()
    forms[number, LATENCY] = truth
    core_of(simulator, forms)
    labels = np.log(simulator.rates(np.arange(len(CHAINS))).astype(np.float64))
    forms[number, LATENCY] = 9
    core_of(simulator, forms)
    blocks = np.array(simulator.uses(np.arange(len(CHAINS)))[number])
    take_shared(simulator, forms, [number], blocks, labels[blocks], [shared])
    assert (forms[number] == shared).all() == taken


def test_variants_without_labels_follow_the_most_frequent_one(
    multiplied: tuple[Simulator, I32],
) -> None:
    simulator, forms = multiplied
    uses = simulator.uses(np.arange(len(CHAINS)))
    number = int(simulator.forms(0)[0])
    first = number // VARIANTS * VARIANTS
    forms[number, LATENCY] = 7
    core_of(simulator, forms)
    fill_variants(simulator, forms, uses)
    own = [n for n in range(first, first + VARIANTS) if n in uses]
    others = [n for n in range(first, first + VARIANTS) if n not in uses]
    assert forms[own, LATENCY].tolist() == [7, 3]
    assert (forms[others, LATENCY] == 7).all()


def test_what_a_full_x87_stack_costs_is_not_taken_over() -> None:
    simulator = Simulator()
    blocks = [bytes.fromhex(code) for code in LOADS]
    assert simulator.keep(blocks).all()
    forms = starting_forms(simulator.templates.categories())
    moved, balanced = (int(simulator.forms(block)[0]) for block in (0, 1))
    assert moved != balanced
    forms[[moved, balanced], 0] = 2000
    core_of(simulator, forms)
    usual = usual_costs(forms, simulator.templates.categories(), moved)
    kept = forms.copy()
    forget_stack_faults(simulator, kept, {moved: [0] * 4}, fewest=4)
    assert kept[moved, 0] == 2000
    forget_stack_faults(simulator, forms, {moved: [0]}, fewest=4)
    assert forms[moved].tolist() == usual.tolist()
    assert forms[balanced, 0] == 2000


def test_odd_costs_of_another_machine_are_left_behind() -> None:
    """One of six forms is far off where the fit starts, and a single label speaks of it."""
    simulator = Simulator()
    blocks = [*CHAINS, *CHAINS[1:], *CHAINS[1:], *CHAINS[1:]]
    kept = np.flatnonzero(simulator.keep(blocks))
    forms = starting_forms(simulator.templates.categories())
    core_of(simulator, forms)
    cycles = simulator.rates(kept).astype(np.float64)
    elsewhere = forms.copy()
    number = int(simulator.forms(2)[0])  # the 16-bit form
    elsewhere[number // VARIANTS * VARIANTS :][:VARIANTS, LATENCY] = 40
    few = [block for block in kept.tolist() if number not in simulator.forms(block) or block == 2]
    start = CoreParameters(MachineSettings(), elsewhere)
    found = [
        fit(
            simulator, start, np.array(few), cycles,
            FittingSettings(passes=1, machine=False, transferred=transferred),
        ).forms[number, LATENCY]
        for transferred in (False, True)
    ]  # fmt: skip
    assert found == [40, 3]


def test_no_passes_leave_the_costs_as_they_were(multiplied: tuple[Simulator, I32]) -> None:
    simulator, forms = multiplied
    number = int(simulator.forms(0)[0])
    forms[number, LATENCY] = 40
    start = CoreParameters(MachineSettings(), forms)
    settings = FittingSettings(passes=0, transferred=True)
    found = fit(simulator, start, np.arange(len(CHAINS)), np.ones(len(CHAINS)), settings)
    assert (found.forms == forms).all()
