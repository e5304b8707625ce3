"""Events from the text of ``perf script``: recorded forms, and samples of a run that is known."""

import subprocess
from collections.abc import Iterable, Iterator
from pathlib import Path

import iced_x86
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nestor.compiler.toolchain import Toolchain
from nestor.events.errors import EventsError
from nestor.events.image import Image
from nestor.events.perf import samples
from nestor.events.perf.mappings import Mappings
from nestor.events.perf.script import Branch, Mapping, Sample, parse
from nestor.events.table import EventTable
from tests.cost.abilities import needs_valgrind
from tests.events.conftest import Compile

RECORDED = """\
 4242/4242   100.000001: PERF_RECORD_MMAP2 4242/4242: [0x401000(0x7b000) @ 0x1000 fe:00 2335398 \
432176462]: r-xp /build/bzip2
          4022d9
 0x4022ef/0x4022d0/P/-/-/3  0x4022de/0x402300/M/-/-/21

 4242/4242   100.000002:     200003 cycles:u:            402305  0x4022de/0x402300/M/-/-/19
 4242/4242   100.000003:        101 branch-misses:u:     4022de
 4242/4242   100.000003: 200003 cpu_core/cycles/u:   402305  0x4022de/0x402300/M/-/-/19
 4242/4242   100.000003:        7 cpu_atom/branch-misses,period=7/:     4022de
 4242/4242   100.000004: 200003 LLC-load-misses:u:  ffffffff81000000 0x4022de/0x402300/-/-/-/-
"""


def test_what_perf_prints() -> None:
    assert list(parse(RECORDED.splitlines())) == [
        Mapping(0x401000, 0x7B000, 0x1000, "/build/bzip2"),
        Sample(
            "",
            0,
            0x4022D9,
            (Branch(0x4022EF, 0x4022D0, False, 3), Branch(0x4022DE, 0x402300, True, 21)),
        ),
        Sample("cycles", 200003, 0x402305, (Branch(0x4022DE, 0x402300, True, 19),)),
        Sample("branch-misses", 101, 0x4022DE, ()),
        Sample("cycles", 200003, 0x402305, (Branch(0x4022DE, 0x402300, True, 19),)),
        Sample("branch-misses", 7, 0x4022DE, ()),
        Sample(
            "LLC-load-misses", 200003, 0xFFFFFFFF81000000, (Branch(0x4022DE, 0x402300, None, 0),)
        ),
    ]


STACK, STACKS = 16, 6000


def stacks(table: EventTable) -> Iterator[list[tuple[int, int]]]:
    """Yield branches taken one after the other, from places that are as likely as in the run.

    Edges are followed as often as they were taken. A branch is the addresses of its instruction and
    of where it goes.
    """
    random = np.random.default_rng(7)
    rows = table.blocks.to_pylist()
    last = last_instructions(table)
    ends = {row["address"]: row["address"] + len(row["code"]) for row in rows}
    after: dict[int, list[tuple[int, int]]] = {}
    for edge in table.edges.to_pylist():
        after.setdefault(edge["from_address"], []).append((edge["to_address"], edge["count"]))
    chances = np.array([row["executions"] for row in rows], float)
    for start in random.choice(len(rows), STACKS, p=chances / chances.sum()).tolist():
        here = rows[start]["address"]
        branches: list[tuple[int, int]] = []
        while len(branches) < STACK and here in after:
            counts = np.array([count for _, count in after[here]], float)
            there = after[here][random.choice(len(counts), p=counts / counts.sum())][0]
            if there != ends[here]:
                branches.append((last[here], there))
            here = there
        if len(branches) == STACK:
            yield branches


def script(table: EventTable, program: Path, base: int) -> str:
    """Return samples of taken branches, as perf prints them.

    :param base: where the program lies in memory.
    """
    image = Image.read(program)
    assert image is not None
    (code,) = image.segments
    lines = [
        f"1/1 0.0: PERF_RECORD_MMAP2 1/1: [{base + code.address:#x}({len(code.code):#x}) @"
        f" {code.offset:#x} fe:00 1 1]: r-xp {program}"
    ]
    for stack in stacks(table):
        words = " ".join(f"{base + a:#x}/{base + b:#x}/P/-/-/0" for a, b in reversed(stack))
        event = f"{STACK - 1} br_inst_retired.near_taken:u: {base + stack[-1][0]:x}"
        lines.append(f"1/1 0.0: {event} {words}")
    return "\n".join(lines)


def last_instructions(table: EventTable) -> dict[int, int]:
    """Return the address of the last instruction of each block, by that of the first."""
    found = {}
    for row in table.blocks.to_pylist():
        *_, final = iced_x86.Decoder(64, row["code"], ip=row["address"])
        found[row["address"]] = final.ip
    return found


@needs_valgrind
def test_samples_of_a_run_give_its_executions(compiled: Compile, tmp_path: Path) -> None:
    from nestor.events.simulated.collect import collect

    program = compiled("branches", "-fPIE", "-pie")
    whole = collect(program, []).table
    own = whole.blocks.to_pylist()
    names = {row["object"] for row in own if row["function"] == "main"}
    keep = [row["object"] in names for row in own]
    edges = whole.edges.to_pylist()
    table = EventTable(
        whole.about,
        whole.blocks.filter(keep),
        whole.edges.filter([e["from_object"] in names and e["to_object"] in names for e in edges]),
    )
    text = tmp_path / "samples.txt"
    text.write_text(script(table, program, 0x7F0000000000))
    sampled = samples.read(text, program)
    assert sampled.about.source == "perf"
    assert sampled.about.period == STACK - 1
    found = {row["address"] + len(row["code"]): row for row in sampled.blocks.to_pylist()}
    hot = [row for row in table.blocks.to_pylist() if row["executions"] > 15_000]
    rates = [
        (row["taken"] / row["executions"], found[row["address"] + len(row["code"])])
        for row in hot
        if row["exit"] == "conditional"
    ]
    assert len(rates) > 10
    for rate, block in rates:
        assert block["code"]
        assert block["taken"] / block["executions"] == pytest.approx(rate, abs=0.08)


@pytest.fixture
def small(toolchain: Toolchain, tmp_path: Path) -> Path:
    """Return a program at fixed addresses: a loop of one block, then a return."""
    source = tmp_path / "small.s"
    source.write_text(
        ".globl _start\n.type _start,@function\n_start:\n  nop\n.L:\n  dec %ecx\n  jne .L\n  ret\n"
        ".size _start,.-_start\n"
    )
    program = tmp_path / "small"
    words = ["-nostdlib", "-static", "-Wl,--image-base=0x400000,-Ttext=0x401000"]
    subprocess.run([toolchain.clang, "-fuse-ld=lld", *words, source, "-o", program], check=True)
    return program


def test_cycles_scale_stacks_and_plain_events_go_to_blocks(small: Path, tmp_path: Path) -> None:
    text = tmp_path / "samples.txt"
    back = "0x401003/0x401001/P/-/-/2"
    missed = "0x401003/0x401001/M/-/-/6"
    text.write_text(
        f"1/1 1.0: 1000 cycles:u: 401003 {back} {back} {missed}\n"
        "1/1 2.0: 50 branch-misses:u: 401003\n"
        "1/1 2.0: 50 branch-misses:u: 7fff00000000\n"
    )
    table = samples.read(text, small)
    (block,) = table.blocks.to_pylist()
    # Two ranges in four cycles, and a sample stands for a thousand. What ran before the oldest
    # record is not on record, nor are its cycles.
    assert (block["address"], block["executions"], block["taken"]) == (0x401001, 500, 500)
    assert (block["mispredicts"], block["cycles"]) == (50, 1000)
    assert table.about.settings["samples"] == "3"


@pytest.mark.parametrize(
    ("events", "column"),
    [
        ("cycles cpu-cycles cpu-clock cpu_clk_unhalted.thread cpu_core/cycles/", "cycles"),
        ("branch-misses br_misp_retired.all_branches ex_ret_brn_misp", "mispredicts"),
        ("LLC-load-misses cache-misses MEM_LOAD_RETIRED.L3_MISS", "llc_misses"),
        ("dTLB-load-misses dtlb_load_misses.walk_completed_4k", "tlb_misses"),
        ("stalled-cycles-frontend bus-cycles ref-cycles cycle_activity.stalls_l3_miss", None),
        ("dTLB-loads L1-dcache-loads LLC-loads L1-dcache-load-misses LLC-prefetches", None),
        ("dtlb_load_misses.walk_active br_misp_retired.ret branches instructions", None),
    ],
)
def test_an_event_is_known_by_its_whole_name(
    events: str, column: str | None, small: Path, tmp_path: Path
) -> None:
    text, back = tmp_path / "samples.txt", "0x401003/0x401001/P/-/-/2"
    for event in events.split():
        of_event = f"1/1 2.0: 50 {event}{'u' if '/' in event else ':u'}: 401003"
        text.write_text(f"1/1 1.0: 1000 : 401003 {back} {back}\n{of_event}\n")
        table = samples.read(text, small)
        counted = ("cycles", "mispredicts", "llc_misses", "tlb_misses")
        expected = {name: 50 if name == column else 0 for name in counted}
        assert {name: table.total(name) or 0 for name in counted} == expected, event


def test_stacks_of_other_events_count_in_want_of_branches_and_cycles(
    small: Path, tmp_path: Path
) -> None:
    text, back = tmp_path / "samples.txt", "0x401003/0x401001/P/-/-/2"
    branches = f"1/1 1.0: 1000 branches:u: 401003 {back} {back}\n"
    others = f"1/1 1.0: 77000 ref-cycles:u: 401003 {back} {back}\n"
    for content, executions in (
        (branches, 1000),
        (branches + others, 1000),
        (others, 77_000),
    ):
        text.write_text(content)
        (block,) = samples.read(text, small).blocks.to_pylist()
        assert block["executions"] == executions


def test_a_program_at_no_fixed_address_needs_mappings(compiled: Compile, tmp_path: Path) -> None:
    text = tmp_path / "samples.txt"
    text.write_text("1/1 1.0: 9 cycles:u: 401003 0x7f03/0x7f01/P/-/-/2 0x7f03/0x7f01/P/-/-/2\n")
    with pytest.raises(EventsError, match=r"again with 'perf script --show-mmap-events'\.$"):
        samples.read(text, compiled("branches", "-fPIE", "-pie"))
    text.write_text("1/1 1.0: 9 cycles:u: 401003\n")
    with pytest.raises(EventsError, match="record with 'perf record -b'"):
        samples.read(text, compiled("branches", "-fPIE", "-pie"))


def test_what_cannot_be_used_is_said(small: Path, tmp_path: Path) -> None:
    text = tmp_path / "samples.txt"
    for content, reason in (
        ("", "has no samples"),
        ("\x00\xff binary", "has no samples"),
        ("1/1 1.0: 1 cycles:u: 401003", "no branch records"),
        ("401003\n 0x500000/0x501000/P/-/-/1 0x500010/0x500000/P/-/-/1", "no branch records"),
        ("401003\n 0x401004/0x401001/P/-/-/1 0x401003/0x401002/P/-/-/1", "another build"),
    ):
        text.write_text(content)
        with pytest.raises(EventsError, match=reason):
            samples.read(text, small)


def standing(mappings: Iterable[Mapping]) -> list[Mapping]:
    """Return the mappings that stand when each has removed those that it overlaps, one by one."""
    kept: list[Mapping] = []
    for new in mappings:
        end = new.start + new.size
        kept = [one for one in kept if one.start + one.size <= new.start or end <= one.start]
        kept.append(new)
    return kept


@given(st.lists(st.tuples(st.integers(0, 60), st.integers(1, 20))))
def test_a_later_mapping_stands_in_the_place_of_earlier_ones(places: list[tuple[int, int]]) -> None:
    given_ = [Mapping(start, size, 0, str(n)) for n, (start, size) in enumerate(places)]
    mappings = Mappings()
    for mapping in given_:
        mappings.add(mapping)
    kept = standing(given_)
    assert len(mappings) == len(kept)
    for address in range(-1, 90):
        held = [one for one in kept if one.start <= address < one.start + one.size]
        assert mappings.find(address) == (held[0] if held else None)


def test_many_mappings() -> None:
    """Pages in any order; then each tenth again, with half of the page before and behind."""
    mappings, many = Mappings(), 20_000
    for page in np.random.default_rng(3).permutation(many).tolist():
        mappings.add(Mapping(page << 12, 1 << 12, page, "old"))
    assert len(mappings) == many
    for page in range(0, many, 10):
        mappings.add(Mapping((page << 12) - 0x800, 0x2000, page, "new"))
    assert mappings.find(many << 12) is None
    for page in range(0, many - 10, 10):
        files = [mappings.find((page + n << 12) + 0x7FF) for n in range(11)]
        assert [None if one is None else one.file for one in files] == (
            ["new", "new", *["old"] * 7, None, "new"]
        )
    assert len(mappings) == many // 10 * 8 + 1  # the page before the first is not there


@given(st.text(alphabet="0123456789abcdefx/PM- :\n[]()@ru.cycles"))
def test_any_text_can_be_parsed(text: str) -> None:
    for item in parse(text.splitlines()):
        assert isinstance(item, Mapping | Sample)
