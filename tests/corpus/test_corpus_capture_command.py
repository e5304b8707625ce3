"""``nestor corpus capture`` as a user meets it: what it captures, and what it says."""

from __future__ import annotations

import hashlib
import json
import shutil
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from nestor.corpus import store
from nestor.corpus.model import NO_MODULES, Input, Program
from tests.command import nestor
from tests.corpus.builds import LIBRARY, MAIN, runs, stock, with_library

if TYPE_CHECKING:
    from pathlib import Path

    from tests.corpus.conftest import SourceTree


def test_a_build_that_keeps_its_compiler_is_explained(tree: SourceTree) -> None:
    with_library(tree)
    stock("cmake", "-S", ".", "-B", "b", cwd=tree.source)
    capture = ["corpus", "capture", "--out", str(tree.wrappers.corpus)]
    done = nestor(*capture, "--", "cmake", "--build", "b", cwd=tree.source)
    assert done.returncode == 1
    assert "nestor: The build called no compiler through Nestor" in done.stderr
    assert "--compile-commands" in done.stderr
    assert not tree.wrappers.corpus.exists(), "no empty corpus is left"
    # What the message proposes, in both forms.
    done = nestor(*capture, "--compile-commands", "b", cwd=tree.source)
    assert done.returncode == 1
    assert "-DCMAKE_EXPORT_COMPILE_COMMANDS=ON" in done.stderr
    shell = "cmake -S . -B new && cmake --build new"
    done = nestor(*capture, "--", "sh", "-c", shell, cwd=tree.source)
    assert (done.returncode, "called no compiler" in done.stderr) == (0, False)
    assert len(store.load(tree.wrappers.corpus).program("source/prog").modules) == 2


@pytest.mark.parametrize("generator", ["Ninja", "Unix Makefiles"])
def test_a_folder_that_gcc_has_built_is_captured_with_its_programs(
    tree: SourceTree, tmp_path: Path, generator: str
) -> None:
    with_library(tree)
    export = [] if generator == "Ninja" else ["-DCMAKE_EXPORT_COMPILE_COMMANDS=ON"]
    stock("cmake", "-G", generator, "-S", ".", "-B", "b", *export, cwd=tree.source)
    capture = ["corpus", "capture", "--out", str(tree.wrappers.corpus), "--compile-commands", "b"]
    done = nestor(*capture, cwd=tree.source)
    assert done.returncode == 0
    assert "1 of 1 programs are not built" in done.stderr
    assert len(store.load(tree.wrappers.corpus).modules) == 2
    stock("cmake", "--build", "b", cwd=tree.source)
    before = {path: path.stat().st_mtime_ns for path in (tree.source / "b").rglob("*")}
    done = nestor(*capture, cwd=tree.source)
    assert (done.returncode, "not built" in done.stderr) == (0, False)
    assert {path: path.stat().st_mtime_ns for path in before} == before
    corpus = store.load(tree.wrappers.corpus)
    assert (corpus.missing, len(corpus.modules)) == ((), 2)
    shutil.rmtree(tree.source)
    assert runs(tree, "source/prog", tmp_path / "relinked")


def test_objects_without_a_module_are_counted(tree: SourceTree) -> None:
    tree.write("main.c", MAIN)
    tree.write("lib.c", LIBRARY)
    tree.write("Makefile", "CC=gcc\nprog: main.o lib.o\n\t$(CC) -o $@ $^\n")
    stock("make", "lib.o", cwd=tree.source)
    out = ["corpus", "capture", "--out", str(tree.wrappers.corpus)]
    done = nestor(*out, "--", "make", cwd=tree.source)
    assert done.returncode == 0
    assert "nestor: source/prog: 1 of 2 objects have no module" in done.stderr
    done = nestor(*out, "--", "make", "-B", cwd=tree.source)
    assert (done.returncode, "no module" in done.stderr) == (0, False)


@pytest.mark.parametrize("words", [["--", "true"], ["--compile-commands", "."]])
def test_a_corpus_that_cannot_be_written_is_named(tree: SourceTree, words: list[str]) -> None:
    tree.write("a.c", "int a;\n")
    entry = {"directory": str(tree.source), "file": "a.c", "command": "cc -c a.c"}
    tree.write("compile_commands.json", json.dumps([entry]))
    tree.write("file", "")
    done = nestor("corpus", "capture", "--out", "file", *words, cwd=tree.source)
    assert (done.returncode, done.stderr.count("\n")) == (1, 1)
    assert done.stderr.startswith("nestor: file cannot be written: it is a file")


def test_nothing_to_capture_leaves_nothing(tree: SourceTree) -> None:
    done = nestor("corpus", "capture", cwd=tree.source)
    assert done.returncode == 1
    assert "write the build after --" in done.stderr
    assert list(tree.source.iterdir()) == []


def test_a_corpus_of_before_with_such_a_program_has_nothing_to_compare(tree: SourceTree) -> None:
    tree.write("a.S", ".globl main\nmain: xor %eax, %eax\n ret\n.section .note.GNU-stack\n")
    tree.write("b.c", "int b;\n")
    for name in ("a.S", "b.c"):
        assert tree.cc("-c", name).returncode == 0
    corpus = tree.finalise()
    content = (tree.source / "a.o").read_bytes()
    digest = hashlib.sha256(content).hexdigest()
    corpus.foreign(digest).parent.mkdir()
    corpus.foreign(digest).write_bytes(content)
    program = Program("demo/prog", "demo", "c", (Input("foreign", digest),))
    store.save(replace(corpus, programs=(program,)))
    loaded = store.load(corpus.root)
    assert (loaded.programs, loaded.missing[0].reason) == ((), f"prog: {NO_MODULES}")
    words = ["evaluate", "--policy", "default", "--corpus", str(corpus.root)]
    for more in ([], ["--program", "prog"]):
        done = nestor(*words, *more, cwd=tree.source)
        assert (done.returncode, done.stderr[:8]) == (1, "nestor: ")
    assert "nothing to compare" in nestor(*words, cwd=tree.source).stderr


def test_the_modules_are_listed_by_the_command_that_messages_name(tree: SourceTree) -> None:
    with_library(tree)
    for name in ("lib/lib.c", "main.c"):
        assert tree.cc("-c", name).returncode == 0
    assert tree.cc("main.o", "lib.o", "-o", "prog").returncode == 0
    root = str(tree.finalise().root)
    done = nestor("log", "--corpus", root, "--unit", "nothing.o")
    assert done.returncode == 1
    assert f"'nestor corpus info {root} --modules' lists them" in " ".join(done.stderr.split())
    shown = nestor("corpus", "info", root, "--modules")
    assert shown.stdout.split() == ["demo/lib.o", "demo/main.o"]
    as_json = json.loads(nestor("corpus", "info", root, "--modules", "--json").stdout)
    assert as_json == [{"name": name, "programs": ["demo/prog"]} for name in shown.stdout.split()]


def test_options_that_are_left_out_are_named(tree: SourceTree) -> None:
    tree.write("main.c", MAIN)
    tree.write("lib.c", LIBRARY)
    flags = "-O2 -Wall -fstack-protector-strong -fsanitize=undefined -mllvm -inline-threshold=3"
    tree.write("Makefile", f"CFLAGS={flags}\nprog: main.o lib.o\n\t$(CC) -o $@ $^ -lubsan\n")
    done = nestor(
        "corpus", "capture", "--out", str(tree.wrappers.corpus), "--", "make", "main.o", "lib.o",
        cwd=tree.source,
    )  # fmt: skip
    assert done.returncode == 0
    (line,) = (one for one in done.stderr.splitlines() if "without these options" in one)
    assert "-mllvm, -inline-threshold=3" in line
    assert "-fsanitize=alignment" in line
    assert "stack-protector" not in line
    done = nestor(
        "corpus", "capture", "--out", str(tree.wrappers.corpus), "--", "make", "-B", "CFLAGS=-O2",
        "main.o", "lib.o", cwd=tree.source,
    )  # fmt: skip
    assert (done.returncode, "without these options" in done.stderr) == (0, False), "of the last"
    plain = nestor("corpus", "capture", "--out", "plain", "--", "make", "-B", "CFLAGS=-O2", "lib.o",
                   cwd=tree.source)  # fmt: skip
    assert (plain.returncode, "without these options" in plain.stderr) == (0, False)


def test_a_build_at_another_level_than_the_corpus_is_named(tree: SourceTree) -> None:
    tree.write("main.c", MAIN)
    tree.write("lib.c", LIBRARY)
    tree.write("Makefile", "prog: main.o lib.o\n\t$(CC) -o $@ $^\n")

    def captured(level: str, flags: str) -> list[str]:
        done = nestor(
            "corpus", "capture", "--out", f"at{level}", "--level", level, "--", "make", "-B",
            f"CFLAGS={flags}", cwd=tree.source,
        )  # fmt: skip
        assert done.returncode == 0
        return [line for line in done.stderr.splitlines() if "the build compiled" in line]

    (line,) = captured("-Oz", "-O0 -O3")
    assert "of 2 objects the build compiled 2 at -O3" in line
    assert "at -Oz" in line and "'--level -O3'" in line
    (line,) = captured("-O2", "")
    assert "2 at -O0" in line and "--level" not in line
    assert captured("-Os", "-O3 -Os") == []
    assert captured("-Oz", "-Oz") == [], "what counts is the last build of each object"


def test_a_build_by_lto_is_named(tree: SourceTree) -> None:
    tree.write("main.c", MAIN)
    tree.write("lib.c", LIBRARY)
    tree.write("Makefile", "prog: main.o lib.o\n\t$(CC) -fuse-ld=lld $(CFLAGS) -o $@ $^\n")
    root = str(tree.wrappers.corpus)
    build = ["corpus", "capture", "--out", root, "--", "make", "-B"]
    done = nestor(*build, "CFLAGS=-Oz -flto=thin", cwd=tree.source)
    assert done.returncode == 0, done.stderr
    (line,) = (one for one in done.stderr.splitlines() if "LTO" in one)
    assert "2 objects the build compiled 2 for thin LTO" in line
    assert "'--lto thin'" in line
    shown = json.loads(nestor("corpus", "info", root, "--modules", "--json").stdout)
    assert [one["programs"] for one in shown] == [["source/prog"]] * 2
    done = nestor(*build, "CFLAGS=-Oz -flto -fno-lto", cwd=tree.source)
    assert (done.returncode, "LTO" in done.stderr) == (0, False)
