"""Events from files of callgrind."""

import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from nestor.events import callgrind
from nestor.events.errors import EventsError
from nestor.events.gathered import Gathered, with_code
from nestor.events.image import Image, Segment
from nestor.events.simulated.tool import find_valgrind
from nestor.events.table import EventTable
from tests.cost.abilities import needs_valgrind
from tests.events.conftest import Compile

FLAGS = ("--dump-instr=yes", "--collect-jumps=yes", "--skip-plt=no", "--cache-sim=yes")


def run(program: Path, out: Path, *flags: str) -> Path:
    words = [
        str(find_valgrind().program),
        "-q",
        "--tool=callgrind",
        f"--callgrind-out-file={out}",
        *flags,
    ]
    words = ["env", "-i", "PATH=/usr/bin:/bin", "LC_ALL=C", "TMPDIR=/tmp", *words, str(program)]
    subprocess.run(words, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return out


@needs_valgrind
def test_executions_are_those_of_the_simulation(
    branches: EventTable, compiled: Compile, tmp_path: Path
) -> None:
    program = compiled("branches")
    counts = run(program, tmp_path / "counts", *FLAGS, "--branch-sim=yes")
    table = callgrind.read(counts, program)
    assert table.about.crude
    assert table.instructions == pytest.approx(branches.instructions, rel=1e-3)
    for name in ("reads", "writes", "taken"):
        assert table.total(name) == pytest.approx(branches.total(name), rel=2e-2)
    assert not table.has("l2_misses")

    def own(of: EventTable) -> dict[tuple[str, int], int]:
        rows = of.blocks.to_pylist()
        names = ("alternating", "correlated", "loop_of_30", "targets_in_turn")
        return {
            (row["function"], row["address"]): row["executions"]
            for row in rows
            if row["function"] in names
        }

    assert own(table) == own(branches)


@needs_valgrind
@pytest.mark.parametrize("lines", ["yes", "no"])
def test_accesses_are_those_of_the_simulation(
    accesses: EventTable, compiled: Compile, tmp_path: Path, lines: str
) -> None:
    program = compiled("accesses")
    counts = run(program, tmp_path / "counts", *FLAGS, f"--dump-line={lines}")
    table = callgrind.read(counts, program)

    def own(of: EventTable) -> list[tuple[int, ...]]:
        columns = ("address", "executions", "reads", "writes", "rep_turns", "rep_bytes")
        return [
            tuple(row[name] for name in columns)
            for row in of.blocks.to_pylist()
            if row["function"] in ("compared", "long_doubles", "strided")
        ]

    assert own(table) == own(accesses)
    assert len(own(table)) > 3


@needs_valgrind
def test_files_that_say_too_little_are_refused(compiled: Compile, tmp_path: Path) -> None:
    program, other = compiled("branches"), compiled("accesses")
    with pytest.raises(EventsError, match=r"' has no instructions; run callgrind with [^;]*yes\.$"):
        callgrind.read(run(program, tmp_path / "lines"), program)
    counts = run(program, tmp_path / "counts", *FLAGS)
    with pytest.raises(EventsError, match="says nothing of"):
        callgrind.read(counts, other)
    rebuilt = tmp_path / "branches-static"
    shutil.copyfile(compiled("branches", "-static", "-O2"), rebuilt)
    with pytest.raises(EventsError, match="of another build"):
        callgrind.read(counts, rebuilt.rename(tmp_path / program.name))
    text = counts.read_text()
    counts.write_text(text[: len(text) // 2])
    with pytest.raises(EventsError, match="cut short"):
        callgrind.read(counts, program)


HEAD = "# callgrind format\npositions: instr line\nevents: Ir Dr\n"


@given(st.text(alphabet="0123456789+-*x ()=\nfnobclsjumpad:/"), st.booleans())
@example("calls=", True)
@example("jcnd=1/2", True)
@example("fn=(1)\n0xzz 1 1", True)
def test_any_text_is_refused_in_a_sentence(
    tmp_path_factory: pytest.TempPathFactory, text: str, headed: bool
) -> None:
    folder = tmp_path_factory.mktemp("callgrind")
    (folder / "counts").write_text((HEAD if headed else "") + text + "\ntotals: 1\n")
    (folder / "program").write_bytes(b"\x7fELF")
    with pytest.raises(EventsError) as error:
        callgrind.read(folder / "counts", folder / "program")
    assert "\n" not in str(error.value)


def test_impossible_counts_are_refused() -> None:
    image = Image([Segment(0x1000, 0, b"\x90\xc3")], {0x1000: "f"})
    gathered = Gathered()
    gathered.executions["/bin/program", 0x1000] = 2.0**40
    gathered.executions["/bin/program", 0x1001] = 3
    gathered.executions["/bin/program", -1] = 3
    found = with_code(gathered, lambda _: image)
    assert (found.executed.executions.tolist(), found.missing) == ([2**40, 3], 1)
    gathered.executions["/bin/program", 0x1000] = 1e30
    with pytest.raises(EventsError, match="impossible"):
        with_code(gathered, lambda _: image)


def test_code_behind_a_function_has_no_name(compiled: Compile) -> None:
    image = Image.read(compiled("branches"))
    assert image is not None
    named = dict(zip(image.function_start, image.function_name, strict=True))
    assert "" in named.values()
    start = next(at for at, name in named.items() if name == "alternating")
    end = min(at for at in named if at > start)
    assert end - start < 200
