"""The settings of a core are found from labels, and mean what they say."""

from dataclasses import replace

import numpy as np
import pytest

from nestor.cost.blocks.table import named
from nestor.cost.core.fitting import FittingSettings, fit
from nestor.cost.core.machine_fitting import Sample, fit_machine
from nestor.cost.core.parameters import (
    CoreParameters,
    MachineSettings,
    ports,
    starting_forms,
)
from nestor.cost.core.simulator import Simulator

RELOADED = bytes.fromhex("488b13 ff4a18")  # mov rdx, [rbx]; dec dword [rdx+0x18]
INDEXED = bytes.fromhex("ff440a18")  # inc dword [rdx+rcx+0x18]
CONSTANT = bytes.fromhex("c60001 4c8b20")  # mov byte [rax], 1; mov r12, [rax]


def rates(settings: MachineSettings, *blocks: bytes) -> list[float]:
    simulator = Simulator()
    assert simulator.keep(blocks).all()
    forms = starting_forms(simulator.templates.categories())
    simulator.set_core(CoreParameters(settings, forms))
    return [float(rate) for rate in simulator.rates()]


def test_renaming_follows_the_name_or_the_address() -> None:
    plain = MachineSettings()
    by_name = rates(plain, RELOADED, INDEXED)
    by_address = rates(replace(plain, renamed=2), RELOADED, INDEXED)
    everywhere = rates(replace(plain, renamed=3), RELOADED, INDEXED)
    assert by_address[0] < by_name[0] - 3
    assert by_address[1] > 3 > everywhere[1]


def test_forwarding_with_an_index_has_a_latency_of_its_own() -> None:
    plain = replace(MachineSettings(), renamed=0)
    slow = replace(plain, indexed_forward_latency=9)
    assert rates(slow, INDEXED)[0] == pytest.approx(rates(plain, INDEXED)[0] + 3, abs=0.5)
    assert rates(slow, RELOADED) == rates(plain, RELOADED)


def test_a_load_that_spans_a_stored_constant_need_not_wait() -> None:
    plain = MachineSettings()
    assert rates(plain, CONSTANT)[0] > 10
    assert rates(replace(plain, partial_constant_penalty=0), CONSTANT)[0] < 2


def test_banks_serve_so_many_loads_of_a_cycle() -> None:
    # Two loads of the same bank, of different ones, and of the halves of eight bytes.
    same = bytes.fromhex("488b4208 4c8b4b08")  # mov rax, [rdx+8]; mov r9, [rbx+8]
    other = bytes.fromhex("488b4208 4c8b4b10")
    halves = bytes.fromhex("8b4208 448b4b0c")
    wide = replace(
        MachineSettings(), load_ports=ports(6, 7, 8), load_latency=4, entry_ops=0, retire_width=16
    )
    assert rates(wide, same, other, halves) == pytest.approx([2 / 3] * 3, rel=0.05)
    twice = rates(replace(wide, bank_reads=2), same, other, halves)
    assert twice == pytest.approx([1, 2 / 3, 2 / 3], rel=0.05)
    once = rates(replace(wide, bank_reads=1), same, other, halves)
    assert once == pytest.approx([2, 1, 1], rel=0.05)


def test_entries_bound_dense_code() -> None:
    dense = b"\x90" * 64
    wide = replace(MachineSettings(), dispatch_width=8, entry_ops=8, free_entries=0)
    assert rates(wide, dense)[0] == pytest.approx(8, rel=0.05)
    halves = replace(wide, entry_ops=4, entry_bytes=32)
    assert rates(halves, dense)[0] == pytest.approx(16, rel=0.05)


def test_a_block_that_moves_the_x87_stack_has_parameters_of_its_own() -> None:
    simulator = Simulator()
    load, store = bytes.fromhex("d9c0"), bytes.fromhex("ddd9")  # fld st(0); fstp st(1)
    assert simulator.keep([load + store, load, load + store + load]).all()
    balanced, moved = simulator.forms(0), simulator.forms(1)
    assert balanced[0] != moved[0] and balanced[0] // 8 == moved[0] // 8
    assert simulator.forms(2)[0] == moved[0]


def test_lea_with_a_large_displacement_has_parameters_of_its_own() -> None:
    simulator = Simulator()
    small, large = bytes.fromhex("488d7f20"), bytes.fromhex("488dbf00200000")  # lea rdi, [rdi+…]
    assert simulator.keep([small, large]).all()
    forms = starting_forms(simulator.templates.categories())
    cheap, costly = (int(simulator.forms(block)[0]) for block in (0, 1))
    assert cheap != costly and cheap // 8 == costly // 8
    forms[cheap, 1] = 0
    wide = replace(MachineSettings(), entry_ops=0)
    simulator.set_core(CoreParameters(wide, forms))
    assert simulator.rates()[0] < 0.5 < simulator.rates()[1]
    earlier = replace(wide, fine_variants=1)  # of files that were written before
    again = Simulator()
    again.set_core(CoreParameters(earlier, starting_forms(again.templates.categories())))
    assert again.keep([small, large]).all()
    assert again.forms(0)[0] == again.forms(1)[0]


def test_what_is_frequent_is_fitted_by_more_blocks() -> None:
    table = named("zen5")
    simulator = Simulator()
    lea = [block for block in table.blocks if block[:2] == b"\x48\x8d" and len(block) < 30]
    kept = np.flatnonzero(simulator.keep(lea))
    forms = starting_forms(simulator.templates.categories())
    core = CoreParameters(replace(MachineSettings(), entry_ops=0), forms)
    number = int(simulator.forms(0)[0])
    hidden = np.array(forms)
    hidden[number, 1] = 3
    simulator.set_core(CoreParameters(core.settings, hidden))
    noise = np.random.default_rng(0).normal(0, 0.1, len(kept))
    cycles = np.maximum(simulator.rates(kept).astype(np.float64), 0.05) * np.exp(noise)
    never = FittingSettings(passes=1, machine=False, fewest=len(kept) + 1, blocks=20)
    assert fit(simulator, core, kept, cycles, replace(never, refined=0)).forms[number, 1] == 1
    assert fit(simulator, core, kept, cycles, never).forms[number, 1] == 3


def test_the_settings_of_a_hidden_core_are_found() -> None:
    table = named("zen5")
    blocks = table.select(np.random.default_rng(2).permutation(len(table))[:120]).blocks
    simulator = Simulator()
    kept = np.flatnonzero(simulator.keep(blocks))
    forms = starting_forms(simulator.templates.categories())
    hidden = replace(
        MachineSettings(), dispatch_width=4, load_latency=6, renamed=0, forward_latency=3
    )
    simulator.set_core(CoreParameters(hidden, forms))
    labels = np.log(np.maximum(simulator.rates(kept).astype(np.float64), 0.05))
    start = CoreParameters(replace(MachineSettings(), dispatch_width=5, entry_ops=0), forms)
    found = fit_machine(simulator, start, Sample(kept, labels))
    errors = np.zeros(len(kept))
    simulator.set_core(found)
    assert simulator.loss(kept, labels, None, errors) < 0.01 * len(kept)
    assert found.settings.dispatch_width == 4
    assert found.settings.load_latency == 6
