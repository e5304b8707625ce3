"""Runs of one's own programs: from a file into the corpus, and run only when asked to."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from nestor.corpus import smoke, store
from nestor.corpus.model import Corpus, Workload
from nestor.corpus.runs_file import RunsFileError, add_runs, read_runs_file
from nestor.errors import NestorError
from tests.command import nestor

if TYPE_CHECKING:
    from pathlib import Path

    from tests.corpus.conftest import SourceTree

MAIN = """
#include <stdio.h>
#include <string.h>
int main(int count, char **words) {
  char text[8] = "";
  FILE *mark = fopen(MARK, "a"), *in = count > 1 ? fopen(words[1], "r") : stdin;
  fputs("ran\\n", mark);
  fclose(mark);
  return !in || !fgets(text, sizeof text, in) ? count != 1 : strcmp(text, "yes") != 0;
}
"""


def write_project(tree: SourceTree) -> Path:
    """Write a project whose programs leave a mark when they run; return the mark."""
    mark = tree.source.parent / "mark"
    tree.write("main.c", MAIN)
    tree.write("tests/data.txt", "yes")
    tree.write(
        "Makefile",
        f"all: one two\none two: main.c\n\t$(CC) '-DMARK=\"{mark}\"' -DN=$@ $< -o $@\n",
    )
    return mark


def captured(tree: SourceTree, runs: str) -> Corpus:
    """Return the corpus of the project with these runs, which another capture does not forget."""
    tree.write("runs.toml", runs + '[inputs]\n"in.txt" = "tests/data.txt"\n')
    capture = ["corpus", "capture", "--out", str(tree.wrappers.corpus)]
    done = nestor(*capture, "--runs", "runs.toml", "--", "make", cwd=tree.source)
    assert done.returncode == 0, done.stderr
    corpus = store.load(tree.wrappers.corpus)
    store.verify(corpus)
    assert nestor(*capture, "--", "make", "-B", cwd=tree.source).returncode == 0
    assert store.load(tree.wrappers.corpus) == corpus
    return corpus


def test_a_smoke_test_is_added_kept_and_run_only_on_request(tree: SourceTree) -> None:
    mark = write_project(tree)
    corpus = captured(tree, '[programs]\none = ["in.txt"]\n"source/two" = ["<in.txt"]\n')
    assert {p.name: p.smoke for p in corpus.programs} == {
        "source/one": ("in.txt",), "source/two": ("<in.txt",),
    }  # fmt: skip
    judge = ["evaluate", "--policy", "always", "--corpus", str(corpus.root)]
    assert nestor(*judge, cwd=tree.source).returncode == 0
    assert not mark.exists()
    done = nestor(*judge, "--smoke", cwd=tree.source)
    assert done.returncode == 0
    assert "2 passed, 0 failed, 0 not run" in done.stdout
    assert mark.read_text().count("ran\n") >= 4


def test_a_run_finds_inputs_of_the_same_date(tree: SourceTree, tmp_path: Path) -> None:
    """An archiver writes it into its output, and two runs of a program should leave the same."""
    write_project(tree)
    corpus = captured(tree, '[programs]\none = ["in.txt"]\n')
    smoke.prepare(corpus, corpus.program("source/one"), tmp_path / "run")
    assert (tmp_path / "run" / "in.txt").stat().st_mtime == smoke.INPUTS_DATE


def test_a_run_without_arguments_and_no_run_any_more(tree: SourceTree, tmp_path: Path) -> None:
    write_project(tree)
    assert tree.run(["make"]).returncode == 0
    file = tree.write("runs.toml", '[programs]\none = ["<"]\ntwo = ["x"]\n')
    corpus = add_runs(tree.finalise(), read_runs_file(file))
    prepared = smoke.prepare(corpus, corpus.program("demo/one"), tmp_path / "run")
    assert prepared == smoke.SmokeRun((), None)
    file.write_text("[programs]\ntwo = []\n")
    corpus = add_runs(corpus, read_runs_file(file))
    assert [p.smoke for p in corpus.programs] == [("<",), ()]
    assert store.load(corpus.root) == corpus


def test_a_workload_of_several_runs_is_added_kept_and_taken_away(tree: SourceTree) -> None:
    write_project(tree)
    corpus = captured(
        tree,
        '[workloads.one]\nprofile = [["in.txt"], ["<in.txt"]]\nmeasure = ["in.txt", "-"]\n'
        '[workloads.two]\nprofile = ["in.txt"]\nmeasure = ["<in.txt"]\n',
    )
    assert {p.name: p.workload for p in corpus.programs} == {
        "source/one": Workload(("in.txt", "-"), (("in.txt",), ("<in.txt",))),
        "source/two": Workload(("<in.txt",), (("in.txt",),)),
    }
    shown = nestor("workload", "list", str(corpus.root), "--json")
    assert [one["profile"] for one in json.loads(shown.stdout)] == [
        [["in.txt"], ["<in.txt"]], [["in.txt"]],
    ]  # fmt: skip
    file = tree.write("runs.toml", "[workloads.one]\n")
    changed = add_runs(corpus, read_runs_file(file))
    assert changed.program("source/one").workload is None
    assert changed.program("source/two") == corpus.program("source/two")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('[workloads]\none = ["x"]\n', "workload of one must be a table of 'profile' and"),
        ('[workloads.one]\nprofil = ["x"]\n', "workload of one must be a table of 'profile' and"),
        ('[workloads.one]\nprofile = ["x"]\n', "one needs runs 'profile', and another one as"),
        ('[workloads.one]\nmeasure = ["x"]\n', "one needs runs 'profile', and another one as"),
        ('[workloads.one]\nmeasure = ["x"]\nprofile = ["x"]\n', "measured run is a run for prof"),
        ('[workloads.one]\nmeasure = ["x"]\nprofile = [["y"], []]\n', "a run has no arguments"),
        ('[workloads.one]\nmeasure = ["x"]\nprofile = [["y"], "z"]\n', "must be texts"),
        ('[workloads.one]\nmeasure = ["<x"]\nprofile = ["y"]\n', "one reads x, which"),
        ("[programs\n", "runs.toml cannot be used"),
        ("[program]\n", r"no table \[program\]"),
        ('[programs]\none = "x"\n', "one must be a list"),
        ("programs = 1\n", "programs must be a table"),
        ('[programs]\none = ["<data"]\n', r"one reads data, which \[inputs\] does not have"),
        ('[inputs]\n"../x" = "main.c"\n', "without folders"),
        ('[inputs]\n"x" = 1\n', "path of a file"),
    ],
)
def test_a_file_that_cannot_be_used_is_named(tmp_path: Path, text: str, reason: str) -> None:
    path = tmp_path / "runs.toml"
    path.write_text(text)
    with pytest.raises(RunsFileError, match=reason):
        read_runs_file(path)


def test_names_and_inputs_that_do_not_exist(tree: SourceTree) -> None:
    write_project(tree)
    assert tree.run(["make"]).returncode == 0
    corpus = tree.finalise()
    file = tree.write("runs.toml", '[programs]\nthree = ["x"]\n')
    with pytest.raises(NestorError, match=r"three is no program .*: demo/one, demo/two\."):
        add_runs(corpus, read_runs_file(file))
    file.write_text('[inputs]\nx = "gone.txt"\n')
    with pytest.raises(NestorError, match=r"gone\.txt cannot be read as an input"):
        read_runs_file(file)
    assert store.load(corpus.root) == corpus
