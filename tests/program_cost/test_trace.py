"""Traces of real runs priced as whole programs, and the tables of events made of them."""

import json
import subprocess
from collections import Counter
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from nestor.cli.main import main
from nestor.compiler.toolchain import Toolchain
from nestor.cost.elf import mapped
from nestor.cost.trace import messages
from nestor.cost.trace.entries import codes
from nestor.cost.trace.messages import EntryId, TraceError
from nestor.cost.trace.program import function_index, segments
from nestor.cost.trace.record import INDEX, TRACE, record
from nestor.events.table import EventTable, read, write
from nestor.events.traced import traced_runs
from nestor.program_cost import penalties, weights
from nestor.program_cost.mispredictions.model import packaged, with_predicted
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
    functions = {f.name: f for f in mapped.read(program)}
    places = {block.address: len(block.code) for f in functions.values() for block in f.blocks}
    executed = [
        (int(address, 16), int(size))
        for address, size in (
            line[3:].split(b",")
            for line in lines_of(program.parent, name)
            if line.startswith(b"I  ")
        )
    ]
    starts = [b.address for b in functions["walk"].blocks if b.code]
    inside = range(starts[0], starts[-1] + places[starts[-1]])
    ways: dict[int, Counter[bool]] = {}
    for (address, size), (after, _) in pairwise(executed):
        if address in inside:
            ways.setdefault(address, Counter())[after != address + size] += 1
    table = table_of(program, name)
    rows = [
        (int(runs), int(taken))
        for function, exit_, runs, taken in zip(
            table.words("function"), table.words("exit"),
            table.numbers("executions"), table.numbers("taken"), strict=True,
        )
        if (function, exit_) == ("walk", "conditional")
    ]  # fmt: skip
    ends = [b.address + len(b.code) for b in functions["walk"].blocks]
    last = {a: size for a, size in executed if a in inside and a + size in ends}
    expected = {address: ways[address] for address in last if ways[address][True]}
    assert rows
    for runs, taken in rows:
        if taken:
            assert Counter({True: taken, False: runs - taken}) in expected.values()
    # Into each block of a function without calls, but its first, as often as it ran.
    arriving: Counter[int] = Counter()
    for target, count in zip(
        table.edges["to_address"].to_pylist(), table.edges["count"].to_pylist(), strict=True
    ):
        arriving[target] += count
    walked = [
        (address, int(runs))
        for function, address, runs in zip(
            table.words("function"), table.words("address"), table.numbers("executions"),
            strict=True,
        )
        if function == "walk"
    ]  # fmt: skip
    assert len(walked) >= 4
    assert all(arriving[address] == runs for address, runs in walked)
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
    print(found)
    cost = penalties.named(MACHINE).mispredict * weights.packaged(MACHINE).values["mispredict"]
    whole, blocks, missed = found["random"]
    assert missed > 8_000  # of 40,000 branches
    assert whole > blocks + 0.5 * missed * cost
    other, _, few = found["regular"]
    assert few < 1_000
    assert whole - other == pytest.approx((missed - few) * cost, rel=0.5)
