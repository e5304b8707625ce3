"""Costs by the frequencies in an object: against callgrind, LLVM's own tools and damaged files."""

import json
import math
import random
import re
import subprocess
from pathlib import Path

import lief
import pytest

from nestor.cli.main import main
from nestor.compiler.toolchain import Toolchain
from nestor.cost.elf import mapped
from nestor.cost.elf.binary import ObjectFileError
from nestor.cost.isa.recurrence import carried, jumps_to_itself, without_recurrence
from nestor.cost.predict.expected import (
    cycles_by_function,
    expected_cycles,
    static_by_function,
    static_cost,
)
from nestor.cost.predict.single_pass import pass_cycles
from nestor.cost.registry import open_model
from nestor.cost.sources.splitting import split
from tests.cost.abilities import needs_valgrind

PROGRAM = """
#include <stdio.h>
#include <stdlib.h>
__attribute__((noinline)) unsigned mix(unsigned *t, unsigned n, unsigned s) {
  for (unsigned i = 0; i < n; i++) {
    s = s * 1664525u + 1013904223u;
    if (s & 0x300) t[s % n] += i; else t[i] ^= s >> 7;
  }
  return s;
}
__attribute__((noinline)) int order(const void *a, const void *b) {
  unsigned x = *(const unsigned *)a, y = *(const unsigned *)b;
  return x < y ? -1 : x > y;
}
int main(void) {
  unsigned n = 500, *t = calloc(n, 4), s = 1;
  for (int i = 0; i < 20; i++) s = mix(t, n, s);
  qsort(t, n, 4, order);
  printf("%u\\n", t[n / 2]);
  return 0;
}
"""
LOOP = (
    "int f(int *p, int n) { int s = 1; while (n--) s += p[n] * s; s += n; s ^= s << 3; return s; }"
)


def compiled(folder: Path, toolchain: Toolchain, text: str, *flags: str) -> Path:
    """Return the object of a C program at -O2."""
    (folder / "s.c").write_text(text)
    out = folder / "s.o"
    command = [str(toolchain.clang), "-O2", "-c", *flags, "s.c", "-o", str(out)]
    subprocess.run(command, cwd=folder, check=True, capture_output=True)
    return out


def section(path: Path, name: str) -> bytes:
    binary = lief.ELF.parse(str(path))
    assert binary is not None
    return next(bytes(s.content) for s in binary.sections if s.name == name)


def test_the_flags_change_no_instruction(tmp_path: Path, toolchain: Toolchain) -> None:
    plain = section(compiled(tmp_path, toolchain, PROGRAM), ".text")
    assert section(compiled(tmp_path, toolchain, PROGRAM, *mapped.FLAGS), ".text") == plain


@needs_valgrind
def test_counts_with_a_profile_are_those_of_callgrind(tmp_path: Path, toolchain: Toolchain) -> None:
    (tmp_path / "s.c").write_text(PROGRAM)
    clang, tools = str(toolchain.clang), toolchain.prefix / "bin"

    def done(*command: str | Path) -> None:
        subprocess.run([str(word) for word in command], cwd=tmp_path, check=True, text=True)

    done(clang, "-O2", "s.c", "-fprofile-generate=raw", "-o", "instrumented")
    done(tmp_path / "instrumented")
    done(tools / "llvm-profdata", "merge", "raw", "-o", "s.profdata")
    path = compiled(tmp_path, toolchain, PROGRAM, "-fprofile-use=s.profdata", *mapped.FLAGS)
    done(clang, "s.o", "-static", "-o", "program")  # stubs of shared libraries would count
    valgrind = ("valgrind", "--tool=callgrind", "--cache-sim=yes", "--callgrind-out-file=counts")
    done(*valgrind, tmp_path / "program")
    measured = _callgrind(tmp_path / "counts")
    functions = {f.name: f for f in mapped.read(path, frequencies=True)}
    assert set(functions) == {"mix", "order", "main"}
    for name, function in functions.items():
        assert function.entry_count
        cost, n = static_cost(function), function.entry_count
        instructions, accesses = measured[name]
        assert n * cost.instructions == pytest.approx(instructions, rel=1e-3)
        # Of an instruction that reads and writes one place, callgrind counts one access.
        own = cost.reads + cost.writes - cost.updates
        assert n * own == pytest.approx(accesses, rel=1e-3)
        assert cost.total == cost.instructions + cost.reads + cost.writes
    assert static_cost(functions["mix"]).updates > 0


def _callgrind(path: Path) -> dict[str, tuple[int, int]]:
    """Return, by function, instructions and data accesses without those of its callees."""
    found: dict[str, list[int]] = {}
    names: dict[str, str] = {}
    name, callee_follows = "", False
    for line in path.read_text().splitlines():
        if match := re.match(r"c?fn=\((\d+)\)(?: (.*))?", line):
            names.setdefault(match[1], match[2])
            if line.startswith("fn="):
                name = names[match[1]]
        elif line.startswith("calls="):
            callee_follows = True
        elif re.match(r"[+*\d-]", line) and name:
            if not callee_follows:
                counts = [int(word) for word in line.split()[1:4]]
                row = found.setdefault(name, [0, 0])
                row[0] += counts[0]
                row[1] += sum(counts[1:])
            callee_follows = False
    return {function: (row[0], row[1]) for function, row in found.items()}


def test_cycles_are_the_sum_over_blocks_as_llvm_lists_them(
    tmp_path: Path, toolchain: Toolchain
) -> None:
    path = compiled(tmp_path, toolchain, LOOP, *mapped.FLAGS)
    readobj = toolchain.prefix / "bin" / "llvm-readobj"
    listing = subprocess.run(
        [readobj, "--bb-addr-map", "--pretty-pgo-analysis-map", str(path)],
        check=True, capture_output=True, text=True,
    ).stdout  # fmt: skip
    entry = r"Offset: (0x\w+)\s+Size: (0x\w+).*?CanFallThrough: (\w+)"
    places = [
        (int(offset, 16), int(offset, 16) + int(size, 16), falls == "Yes")
        for offset, size, falls in re.findall(entry, listing, re.DOTALL)
    ]
    frequencies = [float(text) for text in re.findall(r"Frequency: ([\d.]+)", listing)]
    assert len(places) == len(frequencies) > 2
    assert max(frequencies) > 5  # LLVM guesses that a loop runs often
    code, model = section(path, ".text"), open_model("bound")
    repeated = single = 0.0
    following = [start for start, _, _ in places[1:]] + [None]
    loops = 0
    for (start, end, falls), after, frequency in zip(places, following, frequencies, strict=True):
        block = code[start : after if falls else end]
        for piece in split(block).blocks:
            as_repeated = float(model.predict([piece]).cycles[0])
            cut_off = float(model.predict([without_recurrence(piece)]).cycles[0])
            itself = jumps_to_itself(code[start:end])
            loops += itself
            repeated += frequency * as_repeated
            single += frequency * (as_repeated if itself else min(as_repeated, cut_off))
    assert loops > 0
    content = path.read_bytes()
    assert cycles_by_function(content, model) == {"f": pytest.approx(single, rel=1e-3)}
    (found,) = expected_cycles(mapped.functions(content), model)
    assert found.repeated == pytest.approx(repeated, rel=1e-3)
    assert found.cycles < found.repeated
    assert set(static_by_function(content)) == {"f"}


def test_names_of_registers_do_not_change_a_single_pass() -> None:
    # The same work; only in the first does a register that is read become the one written.
    same, other = bytes.fromhex("8b0484"), bytes.fromhex("8b0c84")  # mov e?x, [rsp+rax*4]
    for name in ("shipped", "bound"):
        found = pass_cycles(open_model(name), [same, other])
        assert found.repeated[0] > 3 * found.repeated[1]
        assert found.single[0] < 2 * found.single[1]
    assert without_recurrence(other) == other
    assert without_recurrence(same) == same + bytes.fromhex("31c0")  # xor eax, eax


@pytest.mark.parametrize(
    ("code", "carried_registers", "zeros"),
    [
        ("4d8b0424", set(), ""),  # mov r8, [r12]
        ("4d8b2424", {"r12"}, "4531e4"),  # mov r12, [r12]
        ("50", {"rsp"}, ""),  # push rax
        ("b001", {"rax"}, "31c0"),  # mov al, 1 keeps the rest of the register
        ("660fefc1", {"zmm0"}, "660fefc0"),  # pxor xmm0, xmm1
        ("c5f9efc1", {"zmm0"}, "c5f9efc0"),  # vpxor xmm0, xmm0, xmm1
        ("31c04801d8", set(), ""),  # xor eax, eax; add rax, rbx
    ],
)
def test_registers_that_a_block_carries(code: str, carried_registers: set[str], zeros: str) -> None:
    block = bytes.fromhex(code)
    assert carried(block) == carried_registers
    assert without_recurrence(block) == block + bytes.fromhex(zeros)


def test_parts_of_a_function_are_one_function(tmp_path: Path, toolchain: Toolchain) -> None:
    whole = mapped.read(compiled(tmp_path, toolchain, PROGRAM, *mapped.FLAGS), frequencies=True)
    flags = (*mapped.FLAGS, "-fbasic-block-sections=all")
    parts = mapped.read(compiled(tmp_path, toolchain, PROGRAM, *flags), frequencies=True)
    assert [f.name for f in parts] == [f.name for f in whole]
    for part, function in zip(parts, whole, strict=True):
        assert {b.identity for b in part.blocks} == {b.identity for b in function.blocks}
        frequency = {b.identity: b.frequency for b in function.blocks}
        assert {b.identity: b.frequency for b in part.blocks} == frequency
        assert part.blocks[0].frequency == 1


def test_probabilities_lead_to_blocks_of_the_function(tmp_path: Path, toolchain: Toolchain) -> None:
    for function in mapped.read(compiled(tmp_path, toolchain, PROGRAM, *mapped.FLAGS)):
        identities = {block.identity for block in function.blocks}
        leaving = [block.successors for block in function.blocks if block.successors]
        assert {s.identity for successors in leaving for s in successors} <= identities
        for successors in leaving:
            assert math.fsum(s.probability for s in successors) == pytest.approx(1, abs=1e-6)


def test_what_a_model_cannot_answer_is_counted(tmp_path: Path, toolchain: Toolchain) -> None:
    text = LOOP + 'void g(void) { asm volatile("cpuid" ::: "eax", "ebx", "ecx", "edx"); }'
    functions = mapped.read(compiled(tmp_path, toolchain, text, *mapped.FLAGS), frequencies=True)
    found = expected_cycles(functions, open_model("shipped"))
    unanswered = {f.name: cycles.unanswered for f, cycles in zip(functions, found, strict=True)}
    assert unanswered == {"f": 0, "g": 1}


def test_objects_without_frequencies_are_refused(tmp_path: Path, toolchain: Toolchain) -> None:
    with pytest.raises(ObjectFileError, match=r"has no basic-block address map; compile it with"):
        mapped.read(compiled(tmp_path, toolchain, LOOP))
    path = compiled(tmp_path, toolchain, LOOP, "-fbasic-block-address-map")
    assert mapped.read(path)[0].entry_count is None
    with pytest.raises(ObjectFileError, match=r"s\.o': its basic-block .* has no frequencies"):
        mapped.read(path, frequencies=True)
    other = compiled(tmp_path, toolchain, LOOP, "--target=aarch64-linux-gnu", *mapped.FLAGS)
    with pytest.raises(ObjectFileError, match="not for x86-64"):
        mapped.read(other)


def test_damaged_objects_never_crash(tmp_path: Path, toolchain: Toolchain) -> None:
    content = compiled(tmp_path, toolchain, PROGRAM, *mapped.FLAGS).read_bytes()
    read = 0
    for seed in range(150):
        chance = random.Random(seed)
        damaged = bytearray(content)
        for _ in range(chance.choice([1, 4, 30])):
            damaged[chance.randrange(len(damaged))] = chance.randrange(256)
        try:
            costs = static_by_function(bytes(damaged))
        except ObjectFileError:
            continue
        read += 1
        assert all(cost.total >= 0 for cost in costs.values())
    assert 0 < read < 150


def test_the_command_prints_each_function_and_totals_by_the_profile(
    tmp_path: Path, toolchain: Toolchain, capsys: pytest.CaptureFixture[str]
) -> None:
    path = str(compiled(tmp_path, toolchain, PROGRAM, *mapped.FLAGS))
    assert main(["costmodel", "functions", path, "--model", "bound", "--json"]) == 0
    (content,) = json.loads(capsys.readouterr().out)["objects"]
    assert content["object"] == path
    assert content["total_static"] is None  # no profile
    costs = {row["function"]: row for row in content["functions"]}
    assert set(costs) == {"mix", "order", "main"}
    for row in costs.values():
        assert row["static"] == row["instructions"] + row["reads"] + row["writes"]
        assert row["cycles"] > 0
    assert main(["costmodel", "functions", path, "--model", "bound"]) == 0
    assert "order" in capsys.readouterr().out
    assert main(["costmodel", "functions", str(tmp_path / "s.c")]) == 1
    assert "not an ELF file" in capsys.readouterr().err
