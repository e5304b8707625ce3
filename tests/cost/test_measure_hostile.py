"""Blocks that would take the harness down, each between two honest ones."""

import dataclasses
import statistics
from collections.abc import Sequence
from pathlib import Path

import pytest

from nestor.cost.measure.harness import (
    HarnessError,
    HarnessSettings,
    Reading,
    ensure_harness,
    readings,
    warm_up,
)
from tests.cost.abilities import needs_sandbox

pytestmark = needs_sandbox

FAST = HarnessSettings(rounds=2, runs=2, milliseconds=200, overlapping=True)
FENCED = dataclasses.replace(FAST, overlapping=False)
HONEST = "480fafc9"  # imul rcx, rcx

ILLEGAL, PROTECTED, CALLS = "illegal instruction", "protection fault", "system call"
LEFT, PAGES, ADDRESS = "left the block", "too many pages", "bad address"

HOSTILE = {
    "ud2": ("0f0b", ILLEGAL),
    "lock cmpxchg8b eax": ("f00fc7c8", ILLEGAL),
    "monitor": ("0f01c8", ILLEGAL),
    "hlt": ("f4", PROTECTED),
    "cli": ("fa", PROTECTED),
    "in al, dx": ("ec", PROTECTED),
    "wrmsr": ("0f30", PROTECTED),
    "rdpmc": ("0f33", None),
    "mov cr0, rax": ("0f22c0", PROTECTED),
    "mov ss, eax": ("8ed0", PROTECTED),
    "int 0x2d": ("cd2d", PROTECTED),
    "iretq": ("48cf", PROTECTED),
    "retf": ("cb", PROTECTED),
    "non-canonical address": ("48b800000000000000808800", PROTECTED),
    "misaligned movaps": ("0f294001", PROTECTED),
    "mxcsr from garbage": ("c70424ffffffff0fae1424", PROTECTED),
    "jmp $": ("ebfe", "timeout"),
    "jmp into itself": ("ebfd", None),
    "exit": ("b83c0000000f05", CALLS),
    "fork": ("b8390000000f05", CALLS),
    "map executable memory": ("b809000000ba070000000f05", CALLS),
    "return from no signal": ("b80f0000000f05", CALLS),
    "32-bit kill of everybody": ("b825000000bbffffffffb909000000cd80", None),
    "vsyscall": ("48c7c0000060ffffd0", None),
    "sysenter": ("0f34", None),
    "div by zero": ("31c9f7f1", "arithmetic fault"),
    "unmasked exceptions": ("c70424000000000fae1424f30f5ec0", "arithmetic fault"),
    "unmasked x87 exceptions": ("66c704240000d92c24d9eed9eedef99b", "arithmetic fault"),
    "page storm": ("480500100000488908", PAGES),
    "rep movsb of everything": ("48c7c1fffffffff3a4", PAGES),
    "rep stosq of everything": ("48c7c1ffffff7ff348ab", PAGES),
    "self-modifying": ("c6050000000090", "writes code"),
    "no stack": ("31e450", ADDRESS),
    "null pointer": ("31c08900", ADDRESS),
    "kernel address": ("48c7c0000000ff8900", None),
    "jmp rax": ("ffe0", LEFT),
    "call rax": ("ffd0", LEFT),
    "ret": ("c3", LEFT),
    "jmp far away": ("e9ffffff7f", LEFT),
    "int3": ("cc", "trap"),
    "single step": ("9c48810c24000100009d", "trap"),
    "alignment check": ("9c48810c24000004009d488b442401", "alignment fault"),
    "backwards": ("fd", "ok"),
    "no fs and gs": ("31c08ee08ee8", "ok"),
    "fs base": ("f3480faed0", None),
    "thread control block": ("6448c704250000000000000000", "ok"),
    "C library's memory": ("64488b3c2500000000b900020000f348ab", None),
    "protection keys": ("31c931d2b8ffffffff0f01ef", None),
    # lea rax, [rip]; and ax, 0xf000; mov rax, [rax + 15] finds the harness's own state.
    "harness's guard": ("488d05000000006625 00f0 488b400f 8940d8", "writes over the harness"),
    "harness's counter": ("488d05000000006625 00f0 488b400f 8940f8", "timeout"),
    "harness's stack": ("488d05000000006625 00f0 488b400f 8900", None),
    "harness's clock": ("488d05000000006625 00f0 488b400f 8940e0", None),
    "longer than the harness takes": ("90" * 5000, "too long"),
}
"""Code and status; None where it depends on the processor, on where memory lies, or on what the
kernel lets users do (``rdpmc``, 32-bit calls)."""

WORDS = {
    *("ok", "crashed", "timeout", "trap", "too long", "writes code", "writes over the harness"),
    *(ILLEGAL, PROTECTED, CALLS, LEFT, PAGES, ADDRESS, "arithmetic fault", "alignment fault"),
    "not measurable",
}


@pytest.fixture(scope="module")
def harness() -> Path:
    """The harness of this machine; any C compiler builds it."""
    return ensure_harness()


@pytest.fixture(scope="module")
def survived(harness: Path) -> dict[str, tuple[Reading, Reading]]:
    """What the harness says of each hostile block, and of the honest one after it."""
    found = run(harness, interleaved())
    return dict(zip(HOSTILE, zip(found[::2], found[1::2], strict=True), strict=True))


def interleaved() -> list[str]:
    """Return the hostile blocks, each followed by the honest one."""
    return [code for hostile, _ in HOSTILE.values() for code in (hostile, HONEST)]


def run(harness: Path, codes: Sequence[str], settings: HarnessSettings = FAST) -> list[Reading]:
    return list(readings(harness, [bytes.fromhex(code) for code in codes], settings))


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_blocks_are_rows_with_a_status(
    survived: dict[str, tuple[Reading, Reading]], name: str
) -> None:
    hostile, honest = survived[name]
    expected = HOSTILE[name][1]
    assert hostile.status == expected or expected is None
    assert hostile.status in WORDS
    assert (hostile.status == "ok") == bool(hostile.cycles)
    assert honest.status == "ok"


def test_blocks_after_hostile_ones_are_measured_as_if_nothing_had_been(harness: Path) -> None:
    """Fenced: how far repetitions overlap depends on the processor, the steady state does not."""
    mixed = run(harness, interleaved(), FENCED)[1::2]
    alone = run(harness, [HONEST] * len(HOSTILE), FENCED)
    after, expected = (
        statistics.median(cycles for reading in found for cycles in reading.cycles)
        for found in (mixed, alone)
    )
    assert len(mixed) == len(HOSTILE)
    assert after == pytest.approx(expected, rel=0.05)


@pytest.mark.parametrize("length", [1, 2, 3])
def test_the_steady_state_of_a_chain_is_its_length_in_cycles(harness: Path, length: int) -> None:
    """An addition takes one cycle everywhere: the harness's calibration counts cycles by it."""
    found = run(harness, ["4801c9" * length] * 20, FENCED)  # add rcx, rcx
    rounds = [cycles for reading in found for cycles in reading.cycles]
    assert statistics.median(rounds) == pytest.approx(length, rel=0.05)


def test_pages_are_mapped_where_they_are_touched(harness: Path) -> None:
    # mov rax, [rdi]; mov [rbx + 64], rax
    two, none = run(harness, ["488b07" + "48898340000000", "4801c9"])
    assert (two.status, len(two.pages)) == ("ok", 2)
    assert all(page % 4096 == 0 for page in two.pages)
    assert (none.status, none.pages) == ("ok", ())


def test_a_block_that_walks_through_memory_gets_its_pages_refilled_sooner(harness: Path) -> None:
    # mov rax, [rsp]; add rax, STEP; mov [rsp], rax; mov [rax], ecx
    walk = "488b0424" + "4805{:08x}" + "48890424" + "8908"
    steps = ["40000000", "00100000"]
    short, long = run(harness, [walk.replace("{:08x}", step) for step in steps])
    assert short.status == "ok"  # four thousand steps in twenty repetitions
    assert 32 < len(short.pages) <= FAST.page_limit
    assert long.status == "too many pages"


def test_rounds_are_as_many_as_asked_for(harness: Path) -> None:
    (one,) = run(harness, ["4801c9"], HarnessSettings(rounds=5, runs=1))
    assert len(one.cycles) == len(one.strain) == 5
    assert one.ticks_per_cycle > 0


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        (HarnessSettings(rounds=0), "--rounds must be 1 to 64"),
        (HarnessSettings(page_limit=100_000), "--page-limit must be 0 to 256"),
        (HarnessSettings(core=1023), "core"),
    ],
)
def test_settings_that_cannot_be_are_one_sentence(
    harness: Path, settings: HarnessSettings, said: str
) -> None:
    with pytest.raises(HarnessError, match=said):
        run(harness, ["90"], settings)


def test_a_machine_where_nothing_runs_is_one_sentence(harness: Path) -> None:
    with pytest.raises(HarnessError, match=r"a nop ends with 'timeout'"):
        warm_up(harness, HarnessSettings(runs=1_000_000, milliseconds=20))


def test_leaving_early_ends_the_harness(harness: Path) -> None:
    found = readings(harness, [b"\x90"] * 1000, FAST)
    assert next(found).status == "ok"
    found.close()  # type: ignore[attr-defined]
    with pytest.raises(StopIteration):
        next(found)
