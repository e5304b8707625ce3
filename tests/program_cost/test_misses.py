"""Misses from a profile: where accesses go, what loops touch, features and the trees."""

import math
from pathlib import Path

import numpy as np
import pytest

from nestor.compiler.process import run
from nestor.compiler.toolchain import find
from nestor.cost.isa.decoding import decode
from nestor.events.simulated.caches import Caches, caches_of
from nestor.events.simulated.collect import collect
from nestor.events.table import EventTable
from nestor.policy.bundle import load, save
from nestor.program_cost.misses.addresses import accesses_of, changes_of
from nestor.program_cost.misses.features import FEATURES, SIZES, accesses_of_run
from nestor.program_cost.misses.footprints import touched
from nestor.program_cost.misses.model import (
    LEVELS,
    Simulated,
    fit,
    misses,
    packaged,
    predicted,
    with_predicted,
)
from tests.cost.abilities import needs_valgrind
from tests.program_cost.test_model import block, run_of

BACK = b"\x75\xf0"
CALL = bytes.fromhex("e800000000")
STEP = bytes.fromhex("488b07 4883c710")  # mov rax, [rdi]; add rdi, 16
FAR = bytes.fromhex("488b07 4881c700100000")  # mov rax, [rdi]; add rdi, 4096


@pytest.mark.parametrize(
    ("code", "kind", "stride", "bound"),
    [
        ("488b07 4883c708", "strided", 8, math.inf),  # mov rax, [rdi]; add rdi, 8
        ("8b048f 48ffc9", "strided", -4, math.inf),  # mov eax, [rdi+rcx*4]; dec rcx
        ("488b07 488d7f40", "strided", 64, math.inf),  # mov rax, [rdi]; lea rdi, [rdi+64]
        ("488b4708 48ffc1", "invariant", 0, math.inf),  # mov rax, [rdi+8]; inc rcx
        ("488b442408", "stack", 0, 64),  # mov rax, [rsp+8]
        ("488b0500000000", "fixed", 0, 64),  # mov rax, [rip]
        ("488b3f", "chased", 0, math.inf),  # mov rdi, [rdi]
        ("488b4710 488d7808", "chased", 0, math.inf),  # mov rax, [rdi+16]; lea rdi, [rax+8]
        ("488b04cb 4c01c1", "computed", 0, math.inf),  # mov rax, [rbx+rcx*8]; add rcx, r8
        ("8b049f 0fb6d9", "computed", 0, 1024),  # mov eax, [rdi+rbx*4]; movzx ebx, cl
        ("8b049f 89d3 81e3ff0f0000", "computed", 0, math.inf),  # two writers, one without a bound
        ("8b0c40 48ffc0", "strided", 3, math.inf),  # mov ecx, [rax+rax*2]; inc rax
        ("8b049f c1eb14", "computed", 0, 16384),  # mov eax, [rdi+rbx*4]; shr ebx, 20
    ],
)
def test_accesses_say_where_they_go(code: str, kind: str, stride: float, bound: float) -> None:
    body = decode(bytes.fromhex(code))
    (found,) = accesses_of(body, changes_of([body], [1.0], calls=False))
    assert (found.kind, found.stride, found.bound) == (kind, stride, bound)
    assert not found.writes


def test_an_address_that_another_access_loads() -> None:
    body = decode(bytes.fromhex("488b07 488b10 4883c708"))  # mov rax, [rdi]; mov rdx, [rax]
    first, second = accesses_of(body, changes_of([body], [1.0], calls=False))
    assert (first.kind, second.kind) == ("strided", "loaded")


def test_a_call_returns_an_address() -> None:
    body = decode(bytes.fromhex("488b10"))  # mov rdx, [rax]
    assert accesses_of(body, changes_of([body], [1.0], calls=False))[0].kind == "invariant"
    assert accesses_of(body, changes_of([body], [1.0], calls=True))[0].kind == "computed"


def test_a_line_counts_once_in_a_block() -> None:
    body = decode(bytes.fromhex("8b07 8b4f08 894740 48ffc7 8b07"))  # [rdi], +8, +64, then moved
    found = accesses_of(body, changes_of([body], [1.0], calls=False))
    assert [one.writes for one in found] == [False, True, False]


def test_steps_in_some_turns_count_in_part() -> None:
    head, sometimes = decode(bytes.fromhex("8b07")), decode(bytes.fromhex("4883c708"))
    (found,) = accesses_of(head, changes_of([head, sometimes], [1.0, 0.25], calls=False))
    assert (found.kind, found.stride) == ("strided", 2.0)


@pytest.mark.parametrize(
    ("outside", "again"),
    [
        ("31c9", True),  # xor ecx, ecx: the index begins anew
        ("4c89c1", True),  # mov rcx, r8
        ("90", False),  # nothing: it goes on where it was
        ("31c9 4883c708", False),  # the base is counted up, too
        ("31c9 488b3e", False),  # the base is loaded
        ("488b0e", False),  # the index is loaded
        ("4c89c1 49ffc0", False),  # the index begins elsewhere each time
    ],
)
def test_loops_inside_loops_that_go_to_the_same_places(outside: str, again: bool) -> None:
    body, other = (decode(bytes.fromhex(code)) for code in ("8b048f 48ffc1", outside))
    own, around = (changes_of([code], [1.0], calls=False) for code in (body, other))
    (found,) = accesses_of(body, own, around)
    assert (found.kind, found.again) == ("strided", again)


def test_loops_and_functions_touch_what_their_accesses_do() -> None:
    rows = [
        block(0, 1, taken=0),
        block(16, 5, CALL, exit="call", instructions=1),
        block(21, 5, taken=0),
        block(48, 500, taken=495, code=STEP + BACK, instructions=3),
        block(64, 5, taken=4),
        block(80, 1, taken=0),
        block(160, 500, FAR + BACK, taken=495, instructions=3, function="g"),
        block(176, 5, b"\xc3", exit="return", instructions=1, function="g"),
    ]
    edges = [
        (0, 16, 1), (16, 160, 5), (160, 160, 495), (160, 176, 5), (21, 48, 5), (48, 48, 495),
        (48, 64, 5), (64, 16, 4), (64, 80, 1),
    ]  # fmt: skip
    found = touched(run_of(rows, edges))
    inner, outer = found.loops[3], found.loops[1]
    assert found.by_entry(inner) == 16 * 100  # bytes by entry: 100 turns of 16
    assert found.by_entry(found.loops[6]) == 64 * 100  # a line for each turn that steps over one
    # five turns in one entry: the loop inside, and what the call touches
    assert found.by_entry(outer) == 5 * (16 * 100 + 64 * 100)
    assert found.run == 500 * (16 + 64)
    assert found.of_function[0] == found.run  # the function that calls has all


def test_every_block_that_accesses_memory_has_a_row() -> None:
    rows = [
        block(0, 100, STEP + BACK, taken=99, instructions=3),
        block(16, 100),
        block(32, 0, STEP),
    ]
    accesses = accesses_of_run(run_of(rows, [(0, 0, 99), (0, 16, 1)]))
    assert accesses.rows.tolist() == [0]
    assert accesses.lines.tolist() == [100]
    assert accesses.features.shape == (1, len(FEATURES))
    assert np.isfinite(accesses.features).all()
    beside = accesses.beside(1024.0) - accesses.beside(2048.0)
    np.testing.assert_allclose(beside[0, -len(SIZES) :], math.log(2))
    assert not beside[0, : -len(SIZES)].any()
    empty = accesses_of_run(run_of([block(0, 0)], []))
    assert empty.features.shape == (0, len(FEATURES))
    assert {name: len(own) for name, own in predicted(empty, packaged(), Caches()).items()} == (
        dict.fromkeys(LEVELS, 0)
    )


def _half_far(seed: int) -> EventTable:
    """Return a run in which loops with far steps miss in every turn, and others never do."""
    random = np.random.default_rng(seed)
    rows, edges = [], []
    for number in range(800):
        far = number % 2 == 0
        executions = int(random.integers(1000, 2000))
        missed = executions if far else 0
        rows.append(
            block(
                32 * number, executions, (FAR if far else STEP) + BACK, taken=executions - 1,
                instructions=3, l1_misses=missed, l2_misses=missed // 2, function=f"f{number}",
            )
        )  # fmt: skip
        edges.append((32 * number, 32 * number, executions - 1))
    return run_of(rows, edges)


def test_what_is_learned_is_predicted_and_kept(tmp_path: Path) -> None:
    runs = []
    for seed in range(3):
        table = _half_far(seed)
        accesses = accesses_of_run(table)
        runs.append(Simulated(f"project{seed}", accesses, misses(accesses, table)))
    trees = fit(runs, Caches())
    for level, own in trees.items():
        save(own, tmp_path / f"{level}.safetensors")
    again = {level: load(tmp_path / f"{level}.safetensors") for level in LEVELS}
    table = _half_far(3)
    found = with_predicted(table, again, Caches())  # type: ignore[arg-type]
    for level, part in (("l1_misses", 1.0), ("l2_misses", 0.5)):
        missed = found.numbers(level)
        np.testing.assert_allclose(missed[0::2], part * table.numbers("executions")[0::2], rtol=0.1)
        assert missed[1::2].max() < 0.05 * 2000
    assert found.total("llc_misses") == 0


def test_trees_are_scaled_by_programs_that_were_left_out() -> None:
    runs = []
    for seed, part in enumerate((1.0, 1.0, 0.0)):  # one of three programs never misses
        table = _half_far(seed)
        accesses = accesses_of_run(table)
        own = {level: part * counts for level, counts in misses(accesses, table).items()}
        runs.append(Simulated(f"project{seed}", accesses, own))
    found = predicted(runs[0].accesses, fit(runs, Caches()), Caches())["l1_misses"].sum()
    # Others say of the three 1/2, 1/2 and 1 of what may miss, where 1, 1 and 0 do.
    assert 0 < found < 0.6 * runs[0].misses["l1_misses"].sum()


def test_packaged_trees_predict_no_more_than_what_is_accessed() -> None:
    trees = packaged()
    assert all(own.features == FEATURES for own in trees.values())
    rows = [
        block(0, 5000, FAR + BACK, taken=4999, instructions=3, tlb_misses=7, code_misses=7),
        block(16, 1),
    ]
    found = with_predicted(run_of(rows, [(0, 0, 4999), (0, 16, 1)]), trees, Caches())
    first, second, last = (found.numbers(level) for level in LEVELS)
    assert (first >= second).all()
    assert (second >= last).all()
    assert first[0] <= 5000
    assert (found.total("tlb_misses"), found.total("code_misses")) == (0, 0)


WALK = """
#include <stdlib.h>
int main(int words, char **arguments) {
  long size = atol(arguments[1]), turns = atol(arguments[2]), sum = 0;
  long *data = malloc(size * 64);
  for (long i = 0; i < size * 8; i++) data[i] = i;
  for (long turn = 0; turn < turns; turn++)
    for (long i = 0; i < size; i++) sum += data[(i * 4099) % size * 8];
  return (int)(sum & 1);
}
"""


@needs_valgrind
def test_a_larger_array_is_predicted_to_miss_more(tmp_path: Path) -> None:
    (tmp_path / "walk.c").write_text(WALK)
    program = tmp_path / "walk"
    built = run([find().clang, "-O2", "-g0", tmp_path / "walk.c", "-o", program])
    assert built.ok
    runs = {
        lines: collect(program, [str(lines), str(4_000_000 // lines)]).table
        for lines in (100, 100_000)
    }
    simulated = {lines: table.total("l2_misses") or 0 for lines, table in runs.items()}
    found = {
        lines: with_predicted(table, packaged(), Caches()).total("l2_misses") or 0
        for lines, table in runs.items()
    }
    assert simulated[100_000] > 100 * simulated[100]
    assert found[100_000] > 2 * found[100]


def test_caches_are_those_that_a_table_says() -> None:
    own = Caches(l1_kib=32, l2_kib=1024, prefetch=False)
    assert caches_of(own.described()) == Caches(l1_kib=32, l2_kib=1024)
    for text in ("", "-4", "4.5", "1" * 40, "٣٢", "5"):
        assert caches_of({"l1_kib": text}) == Caches()
