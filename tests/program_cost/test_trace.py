"""Traces of real runs priced as whole programs, and the tables of events made of them."""

import subprocess
from collections import Counter
from itertools import pairwise
from pathlib import Path

import pytest
from iced_x86 import FlowControl

from nestor.cli.main import main
from nestor.compiler.toolchain import Toolchain
from nestor.cost.elf import mapped
from nestor.cost.isa.decoding import raw
from nestor.cost.registry import open_model
from nestor.cost.trace import messages
from nestor.cost.trace.entries import codes
from nestor.cost.trace.messages import EntryId, TraceError, identifier_record
from nestor.cost.trace.program import function_index, segments
from nestor.cost.trace.record import INDEX, TRACE, record
from nestor.events.table import EventTable, read, write
from nestor.events.traced import OUTSIDE, Piece, TracedRun, pieces_of, traced_runs
from nestor.program_cost import penalties, weights
from nestor.program_cost.mispredictions.model import packaged, with_predicted
from nestor.program_cost.trace import program_costs
from tests.cost.abilities import needs_valgrind

PROGRAM = """
#include <stdlib.h>
__attribute__((noinline)) unsigned walk(unsigned n, unsigned bits) {
  unsigned s = 12345, found = 0;
  for (unsigned i = 0; i < n; i++) {
    s = s * 1664525u + 1013904223u;
    if ((s >> 16) & bits) { __asm__ volatile("addl $3, %0" : "+r"(found)); }
    else { __asm__ volatile("xorl $5, %0" : "+r"(found)); }
  }
  return found;
}
__attribute__((noinline)) unsigned twice(unsigned n, unsigned bits) {
  return walk(n, bits) + walk(n, bits);
}
int main(int argc, char **argv) { return twice(20000, atoi(argv[1])) & 1; }
"""
MACHINE = "AMD Zen 4"
WORDS = ["--model-type", "program", "--penalties", MACHINE]


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory, toolchain: Toolchain) -> Path:
    """A program whose branch goes either way at random, or with the argument 0 always one way."""
    folder = tmp_path_factory.mktemp("branches")
    (folder / "s.c").write_text(PROGRAM)
    words = ["-O2", "-fbasic-block-address-map", "-no-pie", "s.c", "-o", "program"]
    subprocess.run([str(toolchain.clang), *words], cwd=folder, check=True)
    for name, bits in (("random", "1"), ("regular", "0")):
        tool = ["valgrind", "--tool=lackey", "--trace-mem=yes", f"--log-file={name}.lines"]
        subprocess.run([*tool, "./program", bits], cwd=folder, check=False, capture_output=True)
        record(lines_of(folder, name), folder / "program", folder / name, 1 << 23)
    return folder / "program"


def lines_of(folder: Path, name: str) -> list[bytes]:
    return (folder / f"{name}.lines").read_bytes().splitlines()


def table_of(program: Path, name: str) -> EventTable:
    """Return the table of events of a trace."""
    trace = program.parent / name
    indices = function_index(trace / INDEX)
    code = codes(mapped.read(program), indices)
    (run,) = traced_runs(segments(trace / TRACE, ordered=True), code, indices)
    assert (run.missing, run.undecodable) == (0, 0)
    return run.table


def price(
    program: Path, name: str, capsys: pytest.CaptureFixture[str], words: list[str]
) -> tuple[float, str]:
    """Return what the command prints of a trace of one segment, and its remarks."""
    trace = program.parent / name
    files = ["--bb-trace-path", str(trace / TRACE), "--function-index-path", str(trace / INDEX)]
    command = ["costmodel", "trace-model", *files, "--binary-path", str(program), *words]
    assert main(command) == 0
    said = capsys.readouterr()
    return float(said.out), said.err


@needs_valgrind
@pytest.mark.parametrize("name", ["random", "regular"])
def test_branches_and_edges_are_those_of_the_run(program: Path, name: str, tmp_path: Path) -> None:
    (walk,) = (function for function in mapped.read(program) if function.name == "walk")
    ways: dict[int, Counter[bool]] = {}  # by the address of a condition, whether it jumps
    ran = [
        [int(word, base) for word, base in zip(line[3:].split(b","), (16, 10), strict=True)]
        for line in lines_of(program.parent, name)
        if line.startswith(b"I  ")
    ]
    conditions = {}
    for block in walk.blocks:
        at = block.address
        for instruction in raw(block.code):
            if instruction.flow_control == FlowControl.CONDITIONAL_BRANCH:
                conditions[at] = at + instruction.len
            at += instruction.len
    for (address, _), (after, _) in pairwise(ran):
        if address in conditions:
            ways.setdefault(address, Counter())[after != conditions[address]] += 1
    table = table_of(program, name)
    rows = [row for row in table.blocks.to_pylist() if row["function"] == "walk"]
    found = [(row["executions"], row["taken"]) for row in rows if row["exit"] == "conditional"]
    assert sorted(found) == sorted((way.total(), way[True]) for way in ways.values())
    assert len(found) >= 2
    # Nothing is called in it, so each block runs as often as its edges say, the first included.
    arriving: Counter[int] = Counter()
    for edge in table.edges.to_pylist():
        arriving[edge["to_address"]] += edge["count"]
    assert {row["address"]: row["executions"] for row in rows} == {
        row["address"]: arriving[row["address"]] for row in rows
    }
    write(table, tmp_path / "trace.parquet")
    assert read(tmp_path / "trace.parquet").about.source == "trace"


@needs_valgrind
def test_mispredictions_are_part_of_the_price(
    program: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = {}
    for name in ("random", "regular"):
        whole, _ = price(program, name, capsys, WORDS)
        blocks, _ = price(program, name, capsys, ["--model-type", "shipped"])
        missed = with_predicted(table_of(program, name), packaged()).total("mispredicts")
        assert missed is not None
        found[name] = (whole, blocks, missed)
    cost = penalties.named(MACHINE).mispredict * weights.packaged(MACHINE).values["mispredict"]
    whole, blocks, missed = found["random"]
    other, same, few = found["regular"]
    assert missed > 10_000  # a random one of 40,000 branches
    assert few < 100
    assert blocks == pytest.approx(same, rel=0.02)  # block by block the two cost the same
    assert whole - other == pytest.approx((missed - few) * cost, rel=0.1)
    # Each turn waits for the multiplication of the one before, which blocks alone do not know.
    assert same < other < 5 * same


ADD, JUMP_ON, JUMP, CALL, RETURN = (
    bytes.fromhex(code) for code in ("4801d8", "4801d87400", "eb00", "e800000000", "4801d8c3")
)


def run_of(
    order: list[EntryId], code: dict[EntryId, bytes], *, skip_missing: bool = False
) -> TracedRun:
    """Return the table of a trace of entries of the functions 'f' and 'g'."""
    record = messages.segment_record(map(identifier_record, order))
    segment = messages.parse_segment(record, ordered=True)
    (run,) = traced_runs([segment], code, {"f": 0, "g": 1}, skip_missing=skip_missing)
    return run


def taken_of(run: TracedRun) -> list[tuple[str, int]]:
    return [(row["exit"], row["taken"]) for row in run.table.blocks.to_pylist()]


def edges_of(run: TracedRun) -> set[tuple[int, int, int]]:
    rows = {row["address"]: number for number, row in enumerate(run.table.blocks.to_pylist())}
    return {
        (rows[edge["from_address"]], rows[edge["to_address"]], edge["count"])
        for edge in run.table.edges.to_pylist()
    }


def test_jumps_that_come_and_go_with_the_layout_change_no_condition() -> None:
    head, jump, left, right = (EntryId(0, *place) for place in ((0, 0), (0, 1), (1, 0), (2, 0)))
    direct = {head: JUMP_ON, left: ADD, right: RETURN}
    order = [head, right] * 3 + [head, left, right] * 2
    assert taken_of(run_of(order, direct))[0] == ("conditional", 3)
    # The traced code jumped to 'left'; now that lies behind the condition.
    with_jump = [head, right] * 3 + [head, jump, left, right] * 2
    run = run_of(with_jump, direct)
    assert taken_of(run)[0] == ("conditional", 3)
    assert (run.missing, edges_of(run)) == (0, {(0, 1, 2), (0, 2, 3), (1, 2, 2)})
    # The other way round: a jump that the trace does not know lies behind it.
    apart = {head: JUMP_ON, jump: JUMP, right: RETURN, left: ADD}
    assert taken_of(run_of(order, apart))[0] == ("conditional", 3)


def test_calls_lead_to_functions_or_leave_no_trace() -> None:
    before, after, callee = EntryId(0, 0, 0), EntryId(0, 0, 1), EntryId(1, 0, 0)
    code = {before: CALL, after: RETURN, callee: RETURN}
    run = run_of([before, callee, after], code)
    assert edges_of(run) == {(0, 2, 1), (2, 1, 1)}
    rows = run.table.blocks.to_pylist()
    assert [row["function"] for row in rows] == ["f", "f", "g"]
    assert rows[0]["address"] + len(CALL) == rows[1]["address"]
    assert rows[1]["address"] + len(RETURN) < rows[2]["address"]
    # A library runs between: it calls 'g' again and again, which is no loop of 'g'.
    assert edges_of(run_of([before, callee, callee, callee, after], code)) == {
        (0, 2, 1), (2, 1, 1),
    }  # fmt: skip
    assert edges_of(run_of([before, after], code)) == set()


def test_what_has_no_code_is_counted() -> None:
    one, other, bad = EntryId(0, 0, 0), EntryId(0, 1, 0), EntryId(0, 2, 0)
    with pytest.raises(TraceError, match="block 1 of the function 'f', which the code does not"):
        run_of([one, other], {one: ADD})
    run = run_of([one, other, other, bad], {one: ADD, bad: b"\x06"}, skip_missing=True)
    assert (run.runs, run.missing, run.undecodable, len(run.table)) == (4, 2, 1, 1)
    nothing = run_of([other], {}, skip_missing=True)
    machine = penalties.named(MACHINE)
    jump = run_of([one], {one: b"\x74\x00"})
    found = program_costs([nothing, jump, run], open_model("bound"), machine, weights.packaged())
    costs = list(found)
    assert [cost.cost > 0 for cost in costs] == [False, False, True]
    assert (costs[2].runs, costs[2].missing, costs[2].unanswered) == (4, 2, 1)


def test_string_instructions_and_recorded_code_have_rows_of_their_own() -> None:
    assert pieces_of((ADD + bytes.fromhex("f3a4") + RETURN,)) == (
        Piece(ADD, 1, "falls through"),
        Piece(bytes.fromhex("f3a4"), 1, "repeats"),
        Piece(RETURN, 2, "return"),
    )
    message = messages._class("MbbTrace")()
    part = message.shared_object_traces.add(trace_id=7)
    part.instruction_data.extend([ADD, JUMP_ON[3:], ADD, RETURN])
    outside = messages._class("MachineBbId")(basic_block_id=7).SerializeToString()
    caller = [EntryId(0, 0, 0), EntryId(0, 0, 1)]
    message.mbbs.extend(
        [identifier_record(caller[0]), outside, outside, identifier_record(caller[1])]
    )
    segment = messages.parse_segment(message.SerializeToString(), ordered=True)
    (run,) = traced_runs([segment], {caller[0]: CALL, caller[1]: RETURN}, {"f": 0})
    rows = run.table.blocks.to_pylist()
    assert [row["function"] for row in rows] == ["f", "f", OUTSIDE, OUTSIDE]
    assert [row["executions"] for row in rows] == [1, 1, 2, 2]
    assert edges_of(run) == {(0, 2, 1), (2, 3, 2), (3, 2, 1), (3, 1, 1)}


def test_wrong_words_are_refused_in_a_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["costmodel", "trace-model", "--bb-trace-path", "t", "--function-index-path", "i"]
    words += ["--binary-path", "p", "--penalties", "a machine"]
    assert main(words) == 1
    assert "--penalties are those of --model-type program" in capsys.readouterr().err
    assert main([*words, "--model-type", "program"]) == 1
    assert "There are no penalties of 'a machine', only of " in capsys.readouterr().err
