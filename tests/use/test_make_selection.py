"""Which modules ``nestor make`` compiles again, and which it leaves as they were."""

import json
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from nestor.cli.make.records import Record
from nestor.cli.make.selection import Candidate, concerns, left_as_they_are, load, save
from nestor.problems.inlining_size.search.overrides import Key
from nestor.problems.inlining_size.summary.program_summary import module_id
from tests.use.making import BUILD, MAIN, OZ, digests, make, sources

INFINITE = float("inf")


def candidate(name: str, saving: float, kilobytes: float) -> Candidate:
    """Return a module with so much bitcode, of which the front end takes a sixth of the time."""
    size = kilobytes * 1024
    record = Record(
        "first", Path("/b"), None, "clang", ("-c", f"{name}.c"), (Path(f"/b/{name}.o"),)
    )
    key = None if saving == INFINITE else Key("module", module_id(f"{name}.c"))
    return Candidate(record, saving, size, 1.2 * size, True, key)


def names(candidates: list[Candidate], percent: int | None) -> set[str]:
    left = left_as_they_are(candidates, percent)
    return {c.record.outputs[0].stem for c in candidates if c.module in left}


def test_what_saves_most_for_its_size_is_compiled_again() -> None:
    every = [
        candidate("large", saving=90, kilobytes=600),
        candidate("good", saving=80, kilobytes=200),
        candidate("small", saving=1, kilobytes=100),
        candidate("unchanged", saving=0, kilobytes=300),
    ]
    # 40 % of 1200 × 1.2 KB is 576 KB.
    assert names(every, 40) == {"large"}
    assert names(every, None) == {"large", "small"}, "of 30 %, Nestor itself takes a part"
    assert names(every, 0) == {"large", "good", "small"}
    assert names(every, 20) == {"large", "small"}
    assert names(every, 10) == {"large", "good"}
    assert names(every, 60) == {"small"}
    assert names(every, 100) == set()
    assert names(every[::-1], 40) == {"large"}, "the order of objects says nothing"


def test_small_builds_are_compiled_again() -> None:
    assert names([candidate("main", saving=3, kilobytes=200)], None) == set()
    assert names([candidate("main", saving=3, kilobytes=300)], None) == {"main"}


def test_a_module_that_cannot_be_judged_is_compiled_again() -> None:
    every = [
        candidate("unclear", saving=INFINITE, kilobytes=1000),
        candidate("main", saving=50, kilobytes=10),
    ]
    assert names(every, 40) == {"main"}, "nothing of the bound is left"


def test_modules_of_one_name_are_treated_alike() -> None:
    """An override knows a module by the name of its source file without folders."""
    every = [
        candidate("same", saving=100, kilobytes=10),
        candidate("same", saving=1, kilobytes=5000),
        candidate("main", saving=50, kilobytes=2000),
    ]
    assert names(every, 40) == {"same"}


def test_a_name_in_two_languages_is_not_left() -> None:
    c, other = candidate("same", saving=1, kilobytes=5000), candidate("main", 50, 10)
    cxx = replace(c, record=replace(c.record, compiler="clang++"))
    assert names([c, cxx, other], 20) == {"main"}, "one override says how one language is left"


def test_the_file_names_the_modules(tmp_path: Path) -> None:
    every = [candidate("main", saving=50, kilobytes=2000), candidate("util", 9, 2000)]
    left = left_as_they_are(every, 0)
    path = tmp_path / "left.txt"
    save(path, left, every)
    assert load(path) == set(left)
    assert "# main.o: 50 bytes" in path.read_text()
    assert concerns(every[0].record, load(path))
    assert not concerns(candidate("other", 1, 1).record, load(path))
    save(path, {}, every)
    assert not path.exists()
    assert load(path) == set()


def test_what_is_left_stays_stock_until_it_is_lifted(command: Path, project: Path) -> None:
    complete = sources(project.parent / "complete")
    stock = sources(project.parent / "stock")
    make(command, BUILD, complete)
    make(command, BUILD, stock, "--policy", "default")
    done = make(command, BUILD, project, "--again", "0", "--json")
    report = json.loads(done.stdout)
    assert (report["compiled_again"], report["left"]) == (0, 1)
    assert digests(project) == digests(stock)
    assert digests(project) != digests(complete)
    make(command, ["make", "clean"], project)
    for _ in range(2):
        done = make(command, BUILD, project)
        assert done.returncode == 0, done.stderr
        assert digests(project) == digests(stock), "a clean build reads what is left"
    (project / "app.c").write_text(MAIN + "/* edited */\n")
    make(command, BUILD, project)
    assert digests(project)["app.o"] == digests(stock)["app.o"]
    done = make(command, BUILD, project, "--again", "100")
    assert done.returncode == 0, done.stderr
    assert "1 of 2 objects compiled again" in done.stderr
    assert digests(project) == digests(complete)
    for _ in range(2):
        done = make(command, BUILD, project, "--again", "100")
        assert done.returncode == 0, done.stderr
        assert digests(project) == digests(complete)
        make(command, ["make", "clean"], project)


def test_what_is_left_in_cxx_is_under_the_policy_without_a_summary(
    command: Path, project: Path
) -> None:
    template = """
        template <class T> struct Both {
            T value;
            void say(T x) { printf("%d %d\\n", x, value); }
            void go() { say(value); }
        };
        void all(int x) { Both<int> both{x}; both.go(); }
    """

    def prepared(name: str) -> Path:
        folder = sources(project.parent / name)
        (folder / "app.c").write_text(MAIN + template)
        return folder

    def built(name: str, *options: str) -> Path:
        folder = prepared(name)
        done = make(command, [*BUILD, "CC=clang++"], folder, *options)
        assert done.returncode == 0, done.stderr
        return folder

    left = built("left", "--again", "0")
    assert " no-summary  # app.o: " in (left / ".nestor" / "left.txt").read_text()
    alone = prepared("alone")
    line = [*BUILD, f"CC={command} clang++ distilled --"]
    subprocess.run(line, cwd=alone, check=True, capture_output=True)
    assert digests(left) == digests(alone)
    assert digests(left) != digests(built("stock", "--policy", "default"))
    complete = digests(built("complete", "--again", "100"))
    assert digests(left) != complete
    make(command, ["make", "clean"], left)
    make(command, [*BUILD, "CC=clang++"], left)
    assert digests(left) == digests(alone), "a clean build reads what is left"
    make(command, [*BUILD, "CC=clang++"], left, "--again", "100")
    assert digests(left) == complete


def test_nestor_clang_leaves_the_same_modules(
    command: Path, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make(command, BUILD, project, "--again", "0")
    monkeypatch.setenv("NESTOR_PROGRAM", str(project / ".nestor"))
    line = [str(command), "clang", "distilled", "--", *OZ.split(), "-c", "app.c", "-o", "other.o"]
    subprocess.run(line, cwd=project, check=True)
    assert (project / "other.o").read_bytes() == (project / "app.o").read_bytes()


@pytest.mark.parametrize("policy", ["shipped-speed", "shipped-eviction"])
def test_a_policy_that_reads_no_summary_is_offered_none(
    policy: str, command: Path, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make(command, BUILD, project, "--again", "0")
    line = [str(command), "clang", policy, "--", "-O2", "-c", "app.c", "-o"]
    subprocess.run([*line, "alone.o"], cwd=project, check=True)
    monkeypatch.setenv("NESTOR_PROGRAM", str(project / ".nestor"))
    subprocess.run([*line, "other.o"], cwd=project, check=True)
    assert (project / "other.o").read_bytes() == (project / "alone.o").read_bytes()


@pytest.mark.parametrize("options", ["-g", "-g -gz=none -gdwarf-4", "-g1 -ffile-prefix-map=/=/x/"])
def test_debug_information_needs_no_second_front_end(
    options: str, command: Path, project: Path
) -> None:
    line = ["make", "CC=clang++", f"CFLAGS={options} {OZ}"]
    report = json.loads(make(command, line, project, "--json").stdout)
    assert (report["compiled_again"], report["from_source"]) == (1, 0)
    first = digests(project)
    make(command, ["make", "clean"], project)
    make(command, line, project)
    assert digests(project) == first
