"""Calls of functions are counted in profile runs, and kept in the corpus for scores."""

import json
import shutil
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from nestor.cli.workload.calls import Calls
from nestor.compiler.objects import ObjectError, aliases
from nestor.compiler.plugin import Plugin
from nestor.compiler.toolchain import Toolchain
from nestor.corpus import store
from nestor.corpus.model import Corpus, CorpusError, Workload
from nestor.evaluate.workload_calls import calls_of
from nestor.regalloc.weights import measured_calls
from nestor.rollout.local_pool import PoolSettings
from nestor.workload.callgrind import measure
from nestor.workload.calls import CALLS, add_calls, read_calls
from tests.command import nestor

SETTINGS = PoolSettings(jobs=1)


@pytest.fixture
def own(workloads: Corpus, plugin: Plugin, tmp_path: Path) -> Corpus:
    """A copy of the corpus, whose file of calls is the test's."""
    assert plugin.path.exists()
    shutil.copytree(workloads.root, tmp_path / "corpus")
    return store.load(tmp_path / "corpus")


def with_profile_run(corpus: Corpus, **words: str) -> Corpus:
    """Return the corpus with other profile runs of one argument each, by project."""

    def runs(text: str) -> tuple[tuple[str], ...]:
        return tuple((word,) for word in text.split())

    programs = tuple(
        replace(p, workload=Workload(("40",), runs(words[p.project]))) if p.project in words else p
        for p in corpus.programs
    )
    store.save(replace(corpus, programs=programs))
    return store.load(corpus.root)


def test_the_command_writes_the_calls_of_the_profile_runs(
    own: Corpus, capsys: pytest.CaptureFixture[str]
) -> None:
    with_profile_run(own, second="11 5")
    assert Calls(own.root, json=True, pool=SETTINGS).run() == 0
    printed = json.loads(capsys.readouterr().out)
    found = json.loads((own.root / CALLS).read_text())
    assert list(found) == ["first/first", "second/second"]
    first, second = found.values()
    assert (first["main"], first["step"], first["mix"]) == (1, 9, 9)  # measured: 40 and 70
    assert (second["main"], second["step"], second["mix"]) == (2, 16, 16)
    # What has no symbol, or is a library's, is no function of a module.
    assert all(name.isidentifier() for name in first)
    assert "printf" not in first
    assert [row["kept"] for row in printed["programs"]] == [False, False]
    assert printed["programs"][0]["calls"] == sum(first.values())
    assert (printed["out"], printed["failures"]) == (str(own.root / CALLS), [])
    unit = own.module(own.programs[0].modules[0])
    assert dict(measured_calls(own, unit) or {}) == first


def test_programs_that_are_there_are_kept_unless_they_are_to_be_fresh(
    own: Corpus, capsys: pytest.CaptureFixture[str]
) -> None:
    there = {"first/first": {"step": 5}, "gone/gone": {"f": 1}}
    (own.root / CALLS).write_text(json.dumps(there))
    assert Calls(own.root, pool=SETTINGS).run() == 0
    found = read_calls(own.root)
    assert {name: found[name] for name in there} == there
    assert found["second/second"]["step"] == 9
    first, second = (
        line for line in capsys.readouterr().out.splitlines() if "first" in line or "second" in line
    )
    assert "there before" in first
    assert "there before" not in second
    assert Calls(own.root, program=("first",), fresh=True, pool=SETTINGS).run() == 0
    assert read_calls(own.root)["first/first"]["step"] == 9
    assert read_calls(own.root)["gone/gone"] == {"f": 1}


def test_a_split_has_only_its_programs(own: Corpus) -> None:
    first, second = own.projects
    store.save(replace(own, projects=(first, replace(second, split="validation"))))
    assert Calls(own.root, split="validation", pool=SETTINGS).run() == 0
    assert list(read_calls(own.root)) == ["second/second"]


@pytest.mark.parametrize(("broken", "side"), [("build", "build"), ("run", "profile run")])
def test_a_program_that_fails_is_named_and_the_others_are_written(
    own: Corpus, broken: str, side: str, capsys: pytest.CaptureFixture[str]
) -> None:
    if broken == "build":
        own.bitcode(own.module(own.programs[0].modules[0])).write_bytes(b"BC no bitcode")
    else:
        with_profile_run(own, first="0")  # ends with status 1
    assert Calls(own.root, pool=PoolSettings(jobs=2)).run() == 1
    shown = capsys.readouterr()
    assert f"failed first/first ({side}):" in shown.err
    assert "second/second" in shown.out
    assert "first/first" not in shown.out
    assert list(read_calls(own.root)) == ["second/second"]
    # What was there before is not lost, but is not shown as the result either.
    add_calls(own.root, "first/first", {"step": 5})
    assert Calls(own.root, fresh=True, json=True, pool=SETTINGS).run() == 1
    assert read_calls(own.root)["first/first"] == {"step": 5}
    printed: dict[str, Any] = json.loads(capsys.readouterr().out)
    assert [row["program"] for row in printed["programs"]] == ["second/second"]
    assert printed["failures"][0]["side"] == side


def test_programs_without_a_profile_run_are_refused(own: Corpus) -> None:
    bare = (replace(p, workload=Workload(("40",))) for p in own.programs)
    store.save(replace(own, programs=tuple(bare)))
    with pytest.raises(CorpusError, match="has a profile run; 'nestor corpus capture --runs"):
        Calls(own.root, pool=SETTINGS).run()
    assert not (own.root / CALLS).exists()


def test_an_interrupted_command_goes_on(own: Corpus) -> None:
    with_profile_run(own, second="40000000")  # minutes
    words = ["workload", "calls", "--corpus", str(own.root), "--jobs", "1"]
    command = [sys.executable, "-m", "nestor", *words]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as running:
        end = time.monotonic() + 120
        while not (own.root / CALLS).exists():
            assert running.poll() is None
            assert time.monotonic() < end
            time.sleep(0.05)
        running.send_signal(signal.SIGINT)
        _, said = running.communicate(timeout=60)
    assert running.returncode == 128 + signal.SIGINT
    assert "the same command goes on from here" in said
    assert list(read_calls(own.root)) == ["first/first"]
    stamp = {"first/first": {"step": 5}}  # another count would differ
    (own.root / CALLS).write_text(json.dumps(stamp))
    with_profile_run(own, second="11")
    assert nestor(*words).returncode == 0
    found = read_calls(own.root)
    assert found["first/first"] == {"step": 5}
    assert found["second/second"]["step"] == 11


@pytest.mark.parametrize(
    "content",
    [
        "",
        "nothing",
        "\x00\xff",
        "[" * 100_000,
        "[]",
        "{} {}",
        '{"p": 1}',
        '{"p": ["f"]}',
        '{"p": {"f": "1"}}',
        '{"p": {"f": 1.5}}',
        '{"p": {"f": NaN}}',
        '{"p": {"f": 1e999}}',
        '{"p": {"f": true}}',
        '{"p": {"f": -1}}',
        '{"p": {"f": 9223372036854775808}}',
        '{"p": {"f": ' + "9" * 5000 + "}}",
    ],
    ids=range(16),
)
def test_a_file_that_holds_something_else_is_refused(tmp_path: Path, content: str) -> None:
    (tmp_path / CALLS).write_text(content, encoding="latin-1")
    with pytest.raises(CorpusError, match=r"holds no calls of functions .*: remove it") as refused:
        read_calls(tmp_path)
    assert len(str(refused.value).removeprefix(str(tmp_path))) < 250
    with pytest.raises(CorpusError, match="remove it"):
        add_calls(tmp_path, "p", {"f": 1})
    assert (tmp_path / CALLS).read_text(encoding="latin-1") == content


def test_a_file_that_is_none_is_refused(tmp_path: Path) -> None:
    assert read_calls(tmp_path) == {}
    (tmp_path / CALLS).mkdir()
    with pytest.raises(CorpusError, match="cannot be read as calls of functions: it is a folder"):
        read_calls(tmp_path)


def test_the_command_refuses_such_a_file_in_one_sentence_before_it_runs_anything(
    own: Corpus,
) -> None:
    (own.root / CALLS).write_text('{"first/first": {"step": "many"}}')
    for words in ((), ("--fresh",)):
        done = nestor("workload", "calls", "--corpus", str(own.root), "--quiet", *words)
        assert done.returncode == 1
        assert done.stdout == ""
        assert done.stderr.startswith(f"nestor: {own.root / CALLS} holds no calls of functions")
        assert done.stderr.count("\n") == 1


def test_writers_do_not_lose_what_others_write(tmp_path: Path) -> None:
    with ThreadPoolExecutor(8) as threads:
        list(threads.map(lambda n: add_calls(tmp_path, f"p{n}", {"f": n}), range(40)))
    assert read_calls(tmp_path) == {f"p{n}": {"f": n} for n in range(40)}


SOURCE = """
#include <cstdio>
#include <cstdlib>
struct Counter {
  explicit Counter(long start);
  ~Counter();
  long value;
};
__attribute__((noinline)) Counter::Counter(long start) : value(start) { std::puts("made"); }
__attribute__((noinline)) Counter::~Counter() { std::puts("gone"); }
extern "C" __attribute__((noinline)) long fib(long n) {
  return n < 2 ? n : fib(n - 1) + 3 * fib(n - 2);
}
int main(int argc, char **argv) {
  long sum = 0;
  for (int i = 0; i < 7; ++i) sum += Counter(i).value;
  std::printf("%ld\\n", sum + fib(std::atol(argv[1])));
}
"""
CONSTRUCTORS = {"_ZN7CounterC1El", "_ZN7CounterC2El"}


@pytest.fixture
def binary(toolchain: Toolchain, tmp_path: Path) -> Path:
    """A program with a recursive function, and constructors with two names."""
    source, out = tmp_path / "source.cpp", tmp_path / "program"
    source.write_text(SOURCE)
    subprocess.run([toolchain.clangxx, "-O1", source, "-o", out], check=True)
    return out


def test_calls_count_recursion_and_stand_under_all_names(
    workloads: Corpus, toolchain: Toolchain, binary: Path
) -> None:
    run = measure(workloads, workloads.programs[0], binary, ("15",), toolchain)
    calls = calls_of(run, binary)
    assert calls["fib"] == 1973  # 2 F(16) - 1, of which all but one are its own
    assert {calls[name] for name in CONSTRUCTORS} == {7}
    assert calls["_ZN7CounterD2Ev"] == 7
    assert calls["main"] == 1
    assert min(calls.values()) > 0


def test_aliases_are_names_of_one_code(binary: Path, tmp_path: Path) -> None:
    found = aliases(binary)
    assert {found[name] for name in CONSTRUCTORS} == {frozenset(CONSTRUCTORS)}
    assert found["fib"] == {"fib"}
    assert "puts" not in found  # another file's
    with pytest.raises(ObjectError, match="no ELF file"):
        aliases(tmp_path / "source.cpp")
