"""The sweep: a block of every instruction that the decoder knows, and its labels on Zen 4."""

import json
from pathlib import Path

import iced_x86
import numpy as np
import pytest

from nestor.cli.main import main
from nestor.cost.blocks import table
from nestor.cost.isa.decoding import decode
from nestor.cost.isa.refusals import refusal
from nestor.cost.isa.templates import form_name, opcode_of
from nestor.cost.sweep.patterns import COPIES, SweepBlock, sweep

GATHER = "VEX_VGATHERDPS_XMM_VM32X_XMM"
PDEP = "VEX_PDEP_R64_R64_RM64"


@pytest.fixture(scope="module")
def rows() -> list[SweepBlock]:
    return list(sweep())


def opcodes(block: bytes) -> list[str]:
    return [opcode_of(form_name(i)) for i in iced_x86.Decoder(64, block)]


def one(rows: list[SweepBlock], opcode: str, pattern: str, memory: bool) -> bytes:
    found = [r.block for r in rows if (r.opcode, r.pattern, r.memory) == (opcode, pattern, memory)]
    assert len(found) == 1
    return found[0]


def test_every_block_holds_its_instruction_as_often_as_its_pattern_says(
    rows: list[SweepBlock],
) -> None:
    for row in rows:
        assert opcodes(row.block).count(row.opcode) >= (COPIES if row.pattern == "copies" else 1)
    assert len({row.opcode for row in rows}) > 4000
    assert {"FSIN", GATHER, PDEP, "ADD_RM64_R64 lock", "MOVSB_M8_M8 rep"} <= {
        row.opcode for row in rows
    }


def test_nothing_in_it_has_no_throughput(rows: list[SweepBlock]) -> None:
    assert {refusal(row.block) for row in rows} == {""}


def test_copies_write_different_registers_and_chains_read_their_own(
    rows: list[SweepBlock],
) -> None:
    copies = decode(one(rows, PDEP, "copies", False))
    assert len({i.writes for i in copies}) == COPIES
    (alone,) = decode(one(rows, PDEP, "alone", False))
    assert not set(alone.writes) & set(alone.reads)
    (chain,) = decode(one(rows, PDEP, "chain", False))
    assert set(chain.writes) & set(chain.reads)


def test_a_gather_has_a_mask_that_lets_it_load(rows: list[SweepBlock]) -> None:
    mask, gather = decode(one(rows, GATHER, "alone", True))
    assert mask.mnemonic == "vpcmpeqd"
    assert set(mask.writes) <= set(gather.reads)


def test_known_opcodes_are_left_out(rows: list[SweepBlock]) -> None:
    fewer = list(sweep({PDEP, "ADD_RM64_R64 lock"}))
    left = {row.opcode for row in rows} - {row.opcode for row in fewer}
    assert left == {PDEP, "ADD_RM64_R64 lock"}


def test_the_command_writes_a_table_to_measure(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "sweep.parquet"
    assert main(["blocks", "sweep", "--out", str(out), "--lacking", "zen4-sweep", "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    found = table.read(out)
    assert len(found) == said["blocks"] > 0
    assert not found.labelled.any()
    assert found.function is not None
    assert len(set(found.function)) == said["opcodes"]
    assert PDEP not in found.function


def test_the_labels_of_zen4_say_what_instructions_cost(rows: list[SweepBlock]) -> None:
    labels = table.named("zen4-sweep")
    assert labels.stable.all()
    cycles = dict(zip(labels.blocks, labels.cycles.tolist(), strict=True))
    assert cycles[one(rows, PDEP, "chain", False)] == pytest.approx(3, rel=0.02)
    assert cycles[one(rows, PDEP, "copies", False)] == pytest.approx(4, rel=0.02)
    assert cycles[one(rows, GATHER, "alone", True)] == pytest.approx(5, rel=0.05)
    assert 20 < cycles[one(rows, "FSIN", "alone", False)] < 100
    assert set(labels.blocks) <= {row.block for row in rows}
    assert len(np.unique([len(block) for block in labels.blocks])) > 10
