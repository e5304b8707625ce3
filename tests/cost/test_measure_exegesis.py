"""The back end for machines with counters: all of it but the counters."""

import dataclasses
import os
from pathlib import Path

import pytest

from nestor.compiler.process import Ending, Outcome, run
from nestor.compiler.toolchain import Toolchain
from nestor.cost.llvm_tools.exegesis import (
    ExegesisSettings,
    benchmark,
    command,
    failure_text,
    require_counters,
)
from nestor.cost.llvm_tools.machine_code import LlvmToolError, disassemble
from nestor.cost.measure import exegesis_backend as exegesis
from nestor.cost.measure.exegesis_backend import Exegesis, cycles, snippet
from nestor.cost.measure.harness import HarnessSettings, ensure_harness, readings
from nestor.cost.start_state import PAGE_FILLING
from nestor.progress import silent
from tests.cost.abilities import needs_sandbox

DATA = Path(__file__).parent / "data"
BLOCK = bytes.fromhex("4801c9488b070f58c155")  # add, load, addps, push: every x86-64 has these
ADD = bytes.fromhex("4801c9")  # add rcx, rcx: a cycle each, as the harness's own calibration


def listing(toolchain: Toolchain, block: bytes) -> tuple[str, ...]:
    (lines,) = disassemble(toolchain, [block])
    return lines


def failed(stderr: str) -> Outcome:
    return Outcome(Ending.FAILED, 1, stderr, 0.0, 0.0, 0.0)


def test_a_measured_result_gives_cycles_of_the_whole_snippet() -> None:
    # What 22.1.8 wrote here, with a measurement as LLVM's own tests expect it: we have no counter.
    assert cycles((DATA / "exegesis_measured.yaml").read_text()) == 1.0024


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("error:           ''", "error:           'snippet crashed while running'"),
        ("1.0024", "0"),
        ("1.0024", "1e"),
        ("key: inverse_throughput, ", "key: latency, "),
        ("error: ", "wrong: "),
    ],
)
def test_a_result_with_an_error_gives_none(old: str, new: str) -> None:
    assert cycles((DATA / "exegesis_measured.yaml").read_text().replace(old, new)) is None


def test_a_result_without_measurements_gives_none() -> None:
    assert cycles((DATA / "exegesis_skipped.yaml").read_text()) is None
    assert cycles("") is None


def test_llvm_takes_the_snippet_with_all_its_state(toolchain: Toolchain, tmp_path: Path) -> None:
    source, result = tmp_path / "snippet.s", tmp_path / "result.yaml"
    source.write_text(snippet(listing(toolchain, BLOCK), [0x193B5000, 0x22345000]))
    core = max(os.sched_getaffinity(0))
    words = command(toolchain, source, result, 800, ExegesisSettings(core=core))
    # For any x86-64, not for the processor at hand, which LLVM may not have a model of.
    done = run([*words, "--benchmark-phase=assemble-measured-code", "--mcpu=x86-64"])
    assert done.ok, done.stderr
    text = result.read_text()
    for instruction in ("ADD64rr RCX RCX RCX", "MOV64rm RAX RDI", "ADDPSrr XMM0", "PUSH64r RBP"):
        assert instruction in text
    assert "RSP=0x22345800" in text
    assert text.split("register_initial_values:")[1].count("=0x") == 32
    assert 0x193B5000.to_bytes(8, "little").hex().upper() in text, "maps the page"
    assert "min_instructions: 800" in text


@needs_sandbox
def test_registers_are_those_of_the_harness() -> None:
    # mov [register], al for each of the sixteen; r12 and rsp, rbp and r13 are encoded apart.
    stores = ["8800", "8801", "8802", "8803", "880424", "884500", "8806", "8807"]
    stores += ["418800", "418801", "418802", "418803", "41880424", "41884500", "418806", "418807"]
    blocks = [bytes.fromhex(store) for store in stores]
    settings = HarnessSettings(rounds=1, runs=1)
    found = readings(ensure_harness(), blocks, settings)
    lines = snippet([], []).splitlines()
    defined = [int(line.split()[-1], 16) for line in lines if "DEFREG R" in line]
    assert [reading.pages for reading in found] == [(value & ~0xFFF,) for value in defined]


@needs_sandbox
def test_pages_are_filled_as_in_the_harness() -> None:
    load_and_follow = bytes.fromhex("488b078800")  # mov rax, [rdi]; mov [rax], al
    (found,) = readings(ensure_harness(), [load_and_follow], HarnessSettings(rounds=1, runs=1))
    assert PAGE_FILLING & ~0xFFF in found.pages


def test_what_cannot_be_disassembled_is_empty(toolchain: Toolchain) -> None:
    assert disassemble(toolchain, [b"\x06"]) == [()]


def test_no_counter_is_one_sentence_with_the_remedy(toolchain: Toolchain) -> None:
    said = failure_text(toolchain, failed((DATA / "exegesis_no_counter.txt").read_text()))
    assert "cannot read a cycle counter" in said
    assert said.endswith("use --backend rdtsc.")


def test_no_llvm_exegesis_is_one_sentence_with_the_remedy(
    toolchain: Toolchain, tmp_path: Path
) -> None:
    empty = dataclasses.replace(toolchain, prefix=tmp_path)
    with pytest.raises(LlvmToolError, match=r"install llvm-22, or use --backend rdtsc\."):
        require_counters(empty)


def test_other_failures_keep_their_reason(toolchain: Toolchain) -> None:
    said = failure_text(toolchain, failed("llvm-exegesis error: no such scheduler\n"))
    assert "no such scheduler" in said and said.endswith("use --backend rdtsc.")


@needs_sandbox
def test_hostile_blocks_do_not_reach_llvm_exegesis(
    toolchain: Toolchain, monkeypatch: pytest.MonkeyPatch
) -> None:
    reached: list[str] = []

    def note(_toolchain: Toolchain, text: str, *_rest: object) -> str:
        reached.append(text)
        return (DATA / "exegesis_measured.yaml").read_text()

    monkeypatch.setattr(exegesis, "benchmark", note)
    backend = Exegesis(toolchain, ensure_harness(), passes=2)
    blocks = [b"\xf4", BLOCK, b"\xc3", b"\x06"]
    found = backend.measure(blocks, silent)
    assert [row.status for row in found] == [
        "protection fault",
        "ok",
        "control flow",
        "undecodable",
    ]
    assert len(reached) == 2 and all("addps" in text for text in reached)
    sound = found[1]
    assert (sound.cycles, sound.spread, sound.passes, sound.pages) == (1.0024, 0.0, 2, 2)


def test_it_measures_or_says_that_it_cannot(toolchain: Toolchain) -> None:
    try:
        require_counters(toolchain)
    except LlvmToolError as error:
        assert str(error).endswith("use --backend rdtsc.")
    else:  # a machine with counters
        text = snippet(listing(toolchain, ADD), [])
        value = cycles(benchmark(toolchain, text, 200, ExegesisSettings(repeat=5)))
        assert value == pytest.approx(1, abs=0.3)
