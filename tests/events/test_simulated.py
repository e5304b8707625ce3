"""The simulators against sequences whose events are known, and counts against callgrind's."""

import re
import shutil
import subprocess
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow.compute as pc
import pytest

from nestor.compiler.toolchain import Toolchain
from nestor.events.block_map import with_map_blocks
from nestor.events.errors import EventsError
from nestor.events.image import Image
from nestor.events.simulated.caches import Caches
from nestor.events.simulated.collect import RunSettings, collect, counted
from nestor.events.simulated.records import gshare_mispredicts, parse
from nestor.events.simulated.tool import ensure_tool, find_valgrind
from nestor.events.summary import by_function, totals
from nestor.events.table import EventTable
from tests.cost.abilities import needs_valgrind
from tests.events.conftest import Compile

pytestmark = needs_valgrind

ROUNDS = 20_000
ACCESSES = 100_000


def of(table: EventTable, function: str, event: str) -> int:
    (found,) = [one for one in by_function(table) if one.function == function]
    count = found.events[event]
    assert count is not None
    return count


@pytest.mark.parametrize(
    ("function", "executions"),
    [
        ("loop_of_8", ROUNDS),
        ("loop_of_30", ROUNDS),
        ("loop_of_100", 10 * ROUNDS),
        ("alternating", ROUNDS),
        ("period_of_7", ROUNDS),
    ],
)
def test_what_repeats_is_learned(branches: EventTable, function: str, executions: int) -> None:
    assert of(branches, function, "mispredicts") < executions * 0.01


def test_what_is_random_cannot_be_learned(branches: EventTable) -> None:
    assert 0.45 < of(branches, "at_random", "mispredicts") / ROUNDS < 0.55


def test_a_branch_that_follows_another_is_learned_from_it(branches: EventTable) -> None:
    # Of three branches the first is random, the second alternates, the third is the first again.
    assert 0.45 < of(branches, "correlated", "mispredicts") / ROUNDS < 0.60


def test_a_rare_case_is_mispredicted_and_little_more(branches: EventTable) -> None:
    assert 0.008 < of(branches, "biased", "mispredicts") / ROUNDS < 0.02


def test_targets(branches: EventTable) -> None:
    assert of(branches, "targets_in_turn", "indirect_mispredicts") < ROUNDS * 0.01
    assert 0.65 < of(branches, "targets_at_random", "indirect_mispredicts") / ROUNDS < 0.85


def test_returns_are_predicted_as_deep_as_the_stack(branches: EventTable) -> None:
    assert of(branches, "shallow", "indirect_mispredicts") == 0
    wrong = sum(of(branches, f"deep_{one}", "indirect_mispredicts") for one in "abc")
    assert 100 * (64 - 32) <= wrong <= 100 * (64 - 32 + 2)


def test_a_repeated_string_instruction_is_one_block(branches: EventTable) -> None:
    rows = [
        row
        for row in branches.blocks.to_pylist()
        if row["exit"] == "repeats" and row["function"] == "main"
    ]
    assert [(row["executions"], row["rep_turns"], row["rep_bytes"]) for row in rows] == [
        (10, 5000, 5000)
    ]


def test_what_goes_in_comes_out(branches: EventTable) -> None:
    """Every block runs as often as the edges that lead to it; the first has none."""
    came: Counter[tuple[str, int]] = Counter()
    for edge in branches.edges.to_pylist():
        came[edge["to_object"], edge["to_address"]] += edge["count"]
    differ = [
        row["executions"] - came[row["object"], row["address"]]
        for row in branches.blocks.to_pylist()
        if row["executions"] != came[row["object"], row["address"]]
    ]
    assert differ == [1]


def test_code_is_that_of_the_block(branches: EventTable) -> None:
    halves = [
        row["executions"]
        for row in branches.blocks.to_pylist()
        if row["function"] == "alternating" and row["code"][:1] == b"\x90"
    ]
    assert halves == [ROUNDS // 2]


LINES_OF_8 = ACCESSES * 8 // 64


@pytest.mark.parametrize(
    ("function", "event", "least", "most"),
    [
        ("sequential", "l1_misses", LINES_OF_8, LINES_OF_8 + 40),
        ("strided", "l1_misses", ACCESSES, ACCESSES + 40),
        ("same_place", "l1_misses", 0, 10),
        ("random_64k", "l1_misses", ACCESSES * 0.2, ACCESSES * 0.3),
        ("random_64k", "l2_misses", 0, 1024 + 40),
        ("random_8m", "l1_misses", ACCESSES * 0.98, ACCESSES + 40),
        ("random_8m", "l2_misses", ACCESSES * 0.65, ACCESSES * 0.8),
        ("random_32m", "tlb_misses", ACCESSES * 0.65, ACCESSES * 0.8),
        ("random_8m", "tlb_misses", 0, ACCESSES * 0.1),
        ("chase_16k", "l1_misses", 0, 16384 / 64 + 40),
        ("chase_128k", "l1_misses", ACCESSES * 0.97, ACCESSES + 40),
        ("chase_128k", "l2_misses", 0, 131072 / 64 + 40),
    ],
)
def test_misses_without_prefetch(
    accesses_without_prefetch: EventTable, function: str, event: str, least: float, most: float
) -> None:
    assert least <= of(accesses_without_prefetch, function, event) <= most


@pytest.mark.parametrize("function", ["sequential", "strided"])
def test_a_stride_is_fetched_ahead(
    accesses: EventTable, accesses_without_prefetch: EventTable, function: str
) -> None:
    before = of(accesses_without_prefetch, function, "l1_misses")
    assert of(accesses, function, "l1_misses") < 0.05 * before


@pytest.mark.parametrize("form", ["plain", "near", "far", "scaled", "table", "next"])
def test_what_an_instruction_asks_for_is_there(
    accesses_without_prefetch: EventTable, form: str
) -> None:
    for event in ("l1_misses", "l2_misses", "llc_misses", "tlb_misses"):
        assert of(accesses_without_prefetch, f"ahead_{form}", event) < 40


def test_a_line_can_be_asked_for_in_the_second_level(
    accesses_without_prefetch: EventTable,
) -> None:
    assert of(accesses_without_prefetch, "ahead_second", "l1_misses") > 0.98 * ACCESSES
    assert of(accesses_without_prefetch, "ahead_second", "l2_misses") < 40


@pytest.mark.parametrize("function", ["random_8m", "chase_128k"])
def test_what_has_no_order_cannot_be_fetched_ahead(
    accesses: EventTable, accesses_without_prefetch: EventTable, function: str
) -> None:
    before = of(accesses_without_prefetch, function, "l1_misses")
    assert of(accesses, function, "l1_misses") > 0.9 * before


def instructions_by_callgrind(program: Path, out: Path, *arguments: str) -> int:
    valgrind = str(find_valgrind().program)
    words = ["env", "-i", "PATH=/usr/bin:/bin", "LC_ALL=C", "TMPDIR=/tmp", valgrind, "-q"]
    words += ["--tool=callgrind", f"--callgrind-out-file={out}", str(program), *arguments]
    subprocess.run(words, check=True, stdout=subprocess.DEVNULL, stdin=subprocess.DEVNULL)
    (line,) = [line for line in out.read_text().splitlines() if line.startswith("totals:")]
    return int(line.split()[1])


def test_as_many_instructions_as_callgrind_counts(
    branches: EventTable, compiled: Compile, tmp_path: Path
) -> None:
    expected = instructions_by_callgrind(compiled("branches"), tmp_path / "static")
    assert branches.instructions == pytest.approx(expected, rel=1e-3)
    shared = compiled("branches", "-fPIE", "-pie")
    expected = instructions_by_callgrind(shared, tmp_path / "shared")
    assert collect(shared, []).table.instructions == pytest.approx(expected, rel=1e-3)


def test_long_histories_beat_gshare(compiled: Compile, tmp_path: Path) -> None:
    lines = tmp_path / "lines"
    random = np.random.default_rng(1)
    lines.write_text("".join(f"{n}\n" for n in random.integers(0, 10**6, 2000)))
    for program, words in ((compiled("branches"), ()), (Path("/usr/bin/sort"), ("-n", str(lines)))):
        content, _ = counted(program, words, RunSettings(), "--gshare=yes")
        ours = int(parse(content).events["mispredicts"].sum())
        assert 0 < ours < 1.2 * gshare_mispredicts(content)


@pytest.mark.parametrize("options", [("-static",), ("-fPIE", "-pie", "-Wl,-z,lazy")])
def test_all_code_is_that_of_its_file(compiled: Compile, options: tuple[str, ...]) -> None:
    """Stubs to other files (.plt) and what runs first and last (.init, .fini) are, too."""
    rows = collect(compiled("branches", *options), []).table.blocks.to_pylist()
    images = {name: Image.read(Path(name)) for name in {row["object"] for row in rows}}
    for row in rows:
        image = images[row["object"]]
        assert image is not None, row
        first = image.at(row["address"])
        assert first
        assert row["code"].startswith(first)


def test_blocks_have_the_numbers_of_the_compiler(compiled: Compile) -> None:
    program = compiled("branches", "-static", "-fbasic-block-address-map")
    table = with_map_blocks(collect(program, []).table, program)
    numbers = {
        row["map_block"] for row in table.blocks.to_pylist() if row["function"] == "correlated"
    }
    assert {0, 1, 2} <= numbers
    assert None not in numbers
    assert with_map_blocks(table, Path("/bin/false")) is table


def test_equal_runs_give_equal_counts(branches: EventTable, compiled: Compile) -> None:
    again = collect(compiled("branches"), []).table
    assert again.blocks.equals(branches.blocks)
    assert again.edges.equals(branches.edges)


def test_counts_do_not_hang_on_the_names_of_folders(
    compiled: Compile, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tables = []
    for folder in (tmp_path / "a", tmp_path / "another" / "whose-name-is-longer"):
        tool = folder / "cache" / "events" / ensure_tool().folder.name
        shutil.copytree(ensure_tool().folder, tool, symlinks=True)
        program = folder / "program"
        shutil.copy2(compiled("branches", "-fPIE", "-pie"), program)
        assert len(str(program)) <= 125, "name a shorter folder by --basetemp"
        with monkeypatch.context() as patch:
            patch.setenv("NESTOR_CACHE", str(folder / "cache"))
            ensure_tool.cache_clear()
            assert ensure_tool().folder == tool
            tables.append(collect(program, []).table)
        ensure_tool.cache_clear()
    assert totals(tables[0]) == totals(tables[1])
    own = [t.blocks.filter(pc.equal(t.blocks["function"], "correlated")) for t in tables]
    first, second = (blocks.drop_columns(["object"]) for blocks in own)
    assert first.equals(second)


def test_the_program_has_its_own_environment(toolchain: Toolchain, tmp_path: Path) -> None:
    source, program, out = (tmp_path / name for name in ("shown.c", "shown", "out"))
    source.write_text(
        "#include <stdio.h>\nextern char **environ;\nint main(int n, char **v) {\n"
        "  puts(v[0]);\n  for (char **e = environ; *e; e++) puts(*e);\n}\n"
    )
    subprocess.run([toolchain.clang, source, "-o", program], check=True)
    collect(program, [], RunSettings(stdout=out))
    own, *variables = out.read_text().splitlines()
    assert (Path(own), len(own)) == (program, 125)
    names = {variable.partition("=")[0] for variable in variables}
    assert names == {"PATH", "LC_ALL", "TMPDIR", "VALGRIND_LIB", "LD_PRELOAD"}


def test_the_program_has_its_input_and_its_status(tmp_path: Path) -> None:
    text = tmp_path / "text"
    text.write_text("one\ntwo\n")
    settings = RunSettings(stdin=text, stdout=tmp_path / "out")
    assert collect(Path("/bin/cat"), [], settings).exit_status == 0
    assert (tmp_path / "out").read_text() == "one\ntwo\n"
    assert collect(Path("/bin/false"), []).exit_status == 1


def test_what_cannot_be_counted_is_said(tmp_path: Path) -> None:
    script = tmp_path / "script"
    script.write_text("#!/bin/sh\nexec /bin/true\n")
    script.chmod(0o755)
    with pytest.raises(EventsError, match="no program"):
        collect(tmp_path / "absent", [])
    with pytest.raises(EventsError, match="is a script"):
        collect(script, [])
    with pytest.raises(
        EventsError, match=r"not started \(/.*No such file or directory\); start it"
    ):
        collect(Path("/bin/true"), [], RunSettings(folder=tmp_path / "absent"))


def crashing(signal: str) -> list[str]:
    return ["/bin/sh", "-c", f"kill -{signal} $$"]


@pytest.mark.parametrize(
    ("command", "sentence"),
    [
        (crashing("SEGV"), "was ended by SIGSEGV under valgrind; see that it runs to its end"),
        (crashing("ABRT"), "was ended by SIGABRT under valgrind; see that it runs to its end"),
        (crashing("ILL"), "was ended by SIGILL under valgrind; valgrind knows no AVX-512"),
        (crashing("KILL"), "was ended by SIGKILL under valgrind; see that nothing stops it"),
        (["/bin/sleep", "60"], r"did not end in time under valgrind; give it more time \(--seco"),
        (["/bin/sh", "-c", "exec /bin/true"], "left no counts; name a program that does not be"),
        (["{no program}"], r"could not be run by valgrind \(.*: cannot execute binary file\); na"),
        (["{not executable}"], r"could not be run by valgrind \(.*: Permission denied\); name an"),
    ],
)
def test_why_a_run_has_no_counts(command: list[str], sentence: str, tmp_path: Path) -> None:
    (tmp_path / "{no program}").write_bytes(bytes(range(128, 256)) * 9)
    (tmp_path / "{no program}").chmod(0o755)
    shutil.copyfile("/bin/true", tmp_path / "{not executable}")
    program, *words = command
    with pytest.raises(EventsError) as error:
        collect(tmp_path / program, words, RunSettings(seconds=3))
    assert re.fullmatch(rf"'[^']*' {sentence}[^;]*\.", str(error.value)), str(error.value)


def test_a_status_like_that_of_a_signal_is_none() -> None:
    assert collect(Path("/bin/sh"), ["-c", "exit 139"]).exit_status == 139


@pytest.mark.parametrize(
    "caches", [{"l1_kib": 3}, {"l2_kib": 3000}, {"tlb_entries": 0}, {"llc_kib": -1}]
)
def test_caches_that_cannot_be_simulated_are_refused(caches: dict[str, int]) -> None:
    with pytest.raises(EventsError, match="cannot be simulated"):
        replace(Caches(), **caches).options()  # type: ignore[arg-type]  # all are numbers


def test_accesses_of_80_bits_are_seen(accesses: EventTable) -> None:
    assert of(accesses, "long_doubles", "reads") >= 10 * 1000
    assert of(accesses, "long_doubles", "writes") == 10 * 1000


def test_a_repeated_comparison_reads_twice_a_turn(accesses: EventTable) -> None:
    (row,) = [
        row
        for row in accesses.blocks.to_pylist()
        if row["exit"] == "repeats" and row["function"] == "compared"
    ]
    turns = 10 * 4096
    assert (row["executions"], row["rep_turns"], row["reads"]) == (10, turns, 2 * turns)
