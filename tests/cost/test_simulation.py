"""The native side: decoding agrees with iced-x86, and the core does what a core does."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from iced_x86 import Decoder, InstructionInfoFactory, OpAccess

from nestor.cost.blocks.table import named
from nestor.cost.core.fitting import FittingSettings, fit
from nestor.cost.core.parameters import (
    FIELDS,
    CoreParameters,
    MachineSettings,
    checked_core,
    starting_forms,
)
from nestor.cost.core.simulator import Simulator
from nestor.cost.isa.decoding import DecodeError, decode
from nestor.cost.isa.operands import native_register
from nestor.cost.isa.template_layout import VARIANTS

_READS = (OpAccess.READ, OpAccess.COND_READ, OpAccess.READ_WRITE, OpAccess.READ_COND_WRITE)
_WRITES = (OpAccess.WRITE, OpAccess.COND_WRITE, OpAccess.READ_WRITE, OpAccess.READ_COND_WRITE)
ADD = bytes.fromhex("4801c8")  # add rax, rcx
IMUL = bytes.fromhex("480fafc1")  # imul rax, rcx


def simulator_of(*blocks: bytes) -> Simulator:
    simulator = Simulator()
    assert simulator.keep(blocks).all()
    forms = starting_forms(simulator.templates.categories())
    simulator.set_core(CoreParameters(MachineSettings(), forms))
    return simulator


@pytest.fixture(scope="module")
def sample() -> tuple[bytes, ...]:
    table = named("zen5")
    rows = np.random.default_rng(0).permutation(len(table))[:1200]
    return table.select(rows).blocks


def test_native_decoding_agrees_with_iced(sample: tuple[bytes, ...]) -> None:
    simulator = Simulator()
    assert simulator.keep(sample).all()
    factory = InstructionInfoFactory()
    for number, block in enumerate(sample):
        instructions = list(Decoder(64, block))
        operations = simulator.operations(number)
        assert [op.length for op in operations] == [i.len for i in instructions]
        for instruction, op in zip(instructions, operations, strict=True):
            text = str(instruction)
            if text.startswith(("nop", "prefetch", "vzero")):
                continue  # iced-x86 has other views on what these touch
            read, written = set(), set()
            for used in factory.info(instruction).used_registers():
                register = native_register(used.register)
                if register is not None and not 48 <= register < 56:  # x87: renamed by position
                    read |= {register} if used.access in _READS else set()
                    written |= {register} if used.access in _WRITES else set()
            if text.startswith(("push", "pop")):
                written, read = written - {4}, read - {4}  # the stack engine's
            assert {r for r in op.writes if r < 48 or 56 <= r < 64} == written, text
            if not op.idiom:
                assert read <= set(op.reads) | {op.base, op.index}, text


@given(st.binary(min_size=1, max_size=40))
def test_any_bytes_are_decoded_or_refused(block: bytes) -> None:
    simulator = Simulator()
    good = bool(simulator.keep([block])[0])
    try:
        lengths = [instruction.length for instruction in decode(block)]
    except DecodeError:
        assert not good
        return
    if good:
        assert [op.length for op in simulator.operations(0)] == lengths
        forms = starting_forms(simulator.templates.categories())
        simulator.set_core(CoreParameters(MachineSettings(), forms))
        assert simulator.rates()[0] > 0


def test_a_block_that_ends_early_spoils_nothing() -> None:
    whole = bytes.fromhex("4881c000010000")  # add rax, 256
    simulator = Simulator()
    assert simulator.keep([whole[:5], whole]).tolist() == [False, True]


def test_a_chain_costs_its_latency_and_width_bounds_the_rest() -> None:
    nops = b"\x90" * 16
    spread = bytes.fromhex("4883c001 4883c301 4883c101 4883c201 4883c601 4883c701")
    simulator = simulator_of(ADD, IMUL, nops, spread)
    rates = simulator.rates()
    assert rates[:3] == pytest.approx([1, 3, 2], rel=0.02)
    assert rates[3] == pytest.approx(1, rel=0.05)  # six adds on six ports


def test_a_zero_idiom_breaks_the_chain() -> None:
    simulator = simulator_of(IMUL, bytes.fromhex("31c0") + IMUL)
    chained, broken = simulator.rates()
    assert broken < chained / 2


def test_memory_is_renamed_forwarded_or_waits() -> None:
    inc = bytes.fromhex("48ff00")  # inc qword [rax]
    narrow = bytes.fromhex("8808 8b10 89d1")  # mov [rax], cl; mov edx, [rax]; mov ecx, edx
    independent = bytes.fromhex("488b10")  # mov rdx, [rax]
    simulator = simulator_of(inc, narrow, independent)
    renamed, partial, free = simulator.rates()
    assert free < 0.5
    assert 1 <= renamed < 6
    assert partial > 10


def test_fitting_finds_a_hidden_latency(sample: tuple[bytes, ...]) -> None:
    """Labels made by a core with another multiplier lead the fit back to it."""
    blocks = [*sample[:300], *(IMUL + ADD * k for k in range(8)), *(IMUL * k for k in range(1, 8))]
    simulator = simulator_of(*blocks)
    core = simulator.core
    assert core is not None
    number = int(simulator.forms(301)[0])
    first = number // VARIANTS * VARIANTS
    slow = np.array(core.forms)
    slow[first : first + VARIANTS, FIELDS.index("latency")] = 7
    simulator.set_core(CoreParameters(core.settings, slow))
    labels = simulator.rates().astype(np.float64)
    rows = np.arange(len(blocks))
    found = fit(simulator, core, rows, labels, FittingSettings(passes=1))
    assert found.forms[number, FIELDS.index("latency")] == 7
    simulator.set_core(found)
    assert np.abs(np.log(simulator.rates() / labels)).mean() < 0.01


def test_a_core_out_of_bounds_is_refused() -> None:
    forms = starting_forms(np.array([0]))
    with pytest.raises(ValueError, match="out of its range"):
        checked_core(CoreParameters(MachineSettings(window=100_000), forms))
    forms[0, 0] = -1
    with pytest.raises(ValueError, match="out of its range"):
        checked_core(CoreParameters(MachineSettings(), forms))
