"""Counts of real runs: by function, the same each time, and those that callgrind itself prints."""

import re
import subprocess
from pathlib import Path

import pytest

from nestor.compiler.toolchain import Toolchain
from nestor.corpus.model import Corpus
from nestor.workload.callgrind import MeasureError, measure
from nestor.workload.counts import Counts, Measurement
from nestor.workload.kept import measure_kept
from nestor.workload.libraries import loaded_by
from tests.workload.conftest import BuildProgram


def test_entries_and_costs_are_those_of_the_run(
    workloads: Corpus, built: BuildProgram, toolchain: Toolchain
) -> None:
    (program, _) = workloads.programs
    binary = built(program)
    short = measure(workloads, program, binary, ("40",), toolchain)
    long = measure(workloads, program, binary, ("140",), toolchain)
    assert short.functions["step"].calls == 40
    assert long.functions["step"].calls == 140
    assert short.functions["main"].calls == 1
    assert {caller: own["step"] for caller, own in short.edges.items() if "step" in own} == {
        "main": 40
    }
    # What a function costs is in proportion to its calls, and `mix` is most of the program.
    assert long.functions["mix"].counts.total * 40 == short.functions["mix"].counts.total * 140
    assert short.functions["mix"].counts.reads > 40 * 54
    assert short.own.total > 0.9 * sum(f.counts.total for f in short.functions.values())
    assert short.left != long.left
    assert short.entered["printf"].calls == short.edges["main"]["printf"] > 0
    assert not short.entered.keys() & short.functions.keys()
    assert any(name.startswith("libc") for name in short.libraries)
    everything = sum(short.libraries.values(), short.own)
    assert everything == short.counts


def test_the_sums_are_those_that_callgrind_prints(
    workloads: Corpus, built: BuildProgram, toolchain: Toolchain, tmp_path: Path
) -> None:
    program = workloads.programs[0]
    binary = built(program)
    ours = measure(workloads, program, binary, ("4000",), toolchain)
    done = subprocess.run(
        ["valgrind", "--tool=callgrind", "--cache-sim=yes", "--callgrind-out-file=/dev/null",
         str(binary), "4000"],
        capture_output=True, text=True, check=True, cwd=tmp_path,
        env={"PATH": "/usr/bin:/bin", "LC_ALL": "C", "TMPDIR": "/tmp"},
    )  # fmt: skip
    found = re.search(r"Collected : (\d+) (\d+) (\d+)", done.stderr)
    assert found is not None
    theirs = Counts(*map(int, found.groups()))
    # Ours has a library more to load at the start.
    assert abs(theirs.instructions - ours.counts.instructions) < 30_000
    assert abs(theirs.reads - ours.counts.reads) < 10_000
    assert abs(theirs.writes - ours.counts.writes) < 10_000
    assert theirs.instructions > 1_000_000


def test_the_same_binary_gives_the_same_counts(
    workloads: Corpus, built: BuildProgram, toolchain: Toolchain, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = workloads.programs[0]
    binary = built(program)
    first = measure(workloads, program, binary, ("40",), toolchain)
    # The user's environment is not the run's.
    monkeypatch.setenv("LD_LIBRARY_PATH", "/somewhere/quite/long")
    assert measure(workloads, program, binary, ("40",), toolchain) == first


CLOCK = """
#include <stdio.h>
#include <sys/time.h>
#include <time.h>
int main(void) {
  struct timeval day;
  struct timespec precise;
  long rounds = 0;
  time_t start = time(0);
  gettimeofday(&day, 0);
  clock_gettime(CLOCK_MONOTONIC, &precise);
  while (time(0) < start + 2) ++rounds; /* time goes on */
  for (volatile long i = 0; i < day.tv_usec / 1000; ++i) ++rounds;
  printf("%ld %ld %ld\\n", rounds, (long)day.tv_usec, (long)precise.tv_nsec);
}
"""


def test_the_clock_is_the_same_in_each_run(
    workloads: Corpus, toolchain: Toolchain, tmp_path: Path
) -> None:
    (tmp_path / "clock.c").write_text(CLOCK)
    binary = tmp_path / "clock"
    subprocess.run([toolchain.clang, tmp_path / "clock.c", "-o", binary], check=True)
    program = workloads.programs[0]
    first = measure(workloads, program, binary, ("-",), toolchain)
    assert measure(workloads, program, binary, ("-",), toolchain) == first


def test_a_run_that_fails_is_an_error(
    workloads: Corpus, built: BuildProgram, toolchain: Toolchain
) -> None:
    program = workloads.programs[0]
    with pytest.raises(MeasureError, match=r"^the run '0' failed: exit status 1$"):
        measure(workloads, program, built(program), ("0",), toolchain)
    with pytest.raises(MeasureError, match="no run of this kind"):
        measure(workloads, program, built(program), (), toolchain)


def test_kept_measurements_are_not_measured_again(
    workloads: Corpus,
    built: BuildProgram,
    toolchain: Toolchain,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    program = workloads.programs[0]
    binary, folder = built(program), tmp_path / "kept"
    once = measure_kept(workloads, program, binary, ("40",), toolchain, folder)
    assert once.noise_pct is None
    twice = measure_kept(workloads, program, binary, ("40",), toolchain, folder, twice=True)
    assert twice.noise_pct == 0.0
    assert twice.same_output
    (file,) = folder.iterdir()
    monkeypatch.setattr("nestor.workload.kept.measure", _never)
    assert measure_kept(workloads, program, binary, ("40",), toolchain, folder, twice=True) == twice
    with pytest.raises(AssertionError, match="measured"):
        measure_kept(workloads, program, binary, ("41",), toolchain, folder)
    file.write_text(file.read_text()[:-10])
    with pytest.raises(AssertionError, match="measured"):
        measure_kept(workloads, program, binary, ("40",), toolchain, folder)


@pytest.mark.parametrize(
    ("place", "other"),
    [("this_machine", lambda: "another processor"), ("loaded_by", lambda binary: [("libc", "")])],
)
def test_other_libraries_or_another_processor_make_another_measurement(
    workloads: Corpus,
    built: BuildProgram,
    toolchain: Toolchain,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    place: str,
    other: object,
) -> None:
    program = workloads.programs[0]
    binary = built(program)
    measure_kept(workloads, program, binary, ("40",), toolchain, tmp_path)
    monkeypatch.setattr("nestor.workload.kept.measure", _never)
    measure_kept(workloads, program, binary, ("40",), toolchain, tmp_path)
    monkeypatch.setattr(f"nestor.workload.kept.{place}", other)
    with pytest.raises(AssertionError, match="measured"):
        measure_kept(workloads, program, binary, ("40",), toolchain, tmp_path)


def test_what_a_program_loads_is_told_by_content(
    workloads: Corpus, built: BuildProgram, tmp_path: Path
) -> None:
    binary, cache = built(workloads.programs[0]), tmp_path / "ld.so.cache"
    without = dict(loaded_by(binary, cache))
    assert without.pop(str(cache)) == ""
    assert any("libc.so" in name for name in without)
    assert all(len(digest) == 64 for digest in without.values())
    cache.write_bytes(b"one library")
    first = dict(loaded_by(binary, cache))
    cache.write_bytes(b"two libraries")
    second = dict(loaded_by(binary, cache))
    assert first.pop(str(cache)) != second.pop(str(cache))
    assert first == second == without
    assert set(dict(loaded_by(tmp_path / "absent", cache))) == {str(cache)}


def _never(*_: object) -> Measurement:
    raise AssertionError("measured")
