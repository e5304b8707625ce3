"""llvm-mca through its wrapper: many blocks at once, hostile ones among them."""

import dataclasses
from pathlib import Path

import numpy as np
import pytest

from nestor.compiler.toolchain import Toolchain
from nestor.cost.llvm_tools import machine_code
from nestor.cost.llvm_tools.machine_code import LlvmToolError, assemble, disassemble
from nestor.cost.llvm_tools.mca import resources, throughputs

ADD = bytes.fromhex("4801d8")
CHAIN = bytes.fromhex("480fafc3" * 4)
"""Four dependent multiplications."""
NO_CODE = b"\x06"
MARKER = bytes.fromhex("0f1f80efbeadde")


def test_a_chain_costs_its_latencies(toolchain: Toolchain) -> None:
    cycles = throughputs(toolchain, [ADD, CHAIN])
    assert cycles[0] == pytest.approx(1, abs=0.1)
    assert cycles[1] == pytest.approx(12, abs=0.5)


def test_hostile_blocks_are_not_a_number_and_spare_their_neighbours(toolchain: Toolchain) -> None:
    blocks = [ADD, NO_CODE, CHAIN, b"", bytes.fromhex("c5"), MARKER, ADD]
    cycles = throughputs(toolchain, blocks)
    assert np.isnan(cycles[[1, 3, 4, 5]]).all()
    assert cycles[[0, 2, 6]].tolist() == throughputs(toolchain, [ADD, CHAIN, ADD]).tolist()


def test_results_do_not_depend_on_batches(
    toolchain: Toolchain, monkeypatch: pytest.MonkeyPatch
) -> None:
    blocks = [ADD * (1 + i) for i in range(7)]
    seen: list[tuple[int, int]] = []
    whole = throughputs(toolchain, blocks)
    monkeypatch.setattr(machine_code, "BATCH", 3)
    parts = throughputs(
        toolchain, blocks, progress=lambda _, done, total: seen.append((done, total))
    )
    assert parts.tolist() == whole.tolist()
    assert seen == [(3, 7), (6, 7), (7, 7)]


def test_resources_of_instructions(toolchain: Toolchain) -> None:
    add, load, nothing = resources(toolchain, [ADD, bytes.fromhex("488b03"), NO_CODE])
    assert add is not None
    assert (add.latency, add.micro_ops, add.loads) == (1, 1, False)
    assert sum(add.usage.values()) == pytest.approx(1)
    assert len(add.usage) > 1, "spread over the units that can take it"
    assert load is not None
    assert load.loads
    assert load.latency > 3
    assert nothing is None


def test_disassembly(toolchain: Toolchain) -> None:
    assert disassemble(toolchain, [ADD + b"\xc3", NO_CODE]) == [("addq\t%rbx, %rax", "retq"), ()]


def test_assembly_of_either_syntax(toolchain: Toolchain, tmp_path: Path) -> None:
    out = tmp_path / "code.o"
    assemble(toolchain, "addq %rbx, %rax", out)
    assert ADD in out.read_bytes()
    assemble(toolchain, "imul rax, rbx", out, intel=True)
    assert CHAIN[:4] in out.read_bytes()
    with pytest.raises(LlvmToolError, match="invalid instruction mnemonic 'hello'"):
        assemble(toolchain, "hello", out)


def test_what_is_missing_is_said(toolchain: Toolchain, tmp_path: Path) -> None:
    with pytest.raises(LlvmToolError, match="no model of the processor 'zen99'"):
        throughputs(toolchain, [ADD], "zen99")
    elsewhere = dataclasses.replace(toolchain, prefix=tmp_path)
    with pytest.raises(
        LlvmToolError, match=r"lacks llvm-mca and llvm-mc: install the package llvm-22"
    ):
        throughputs(elsewhere, [ADD])
