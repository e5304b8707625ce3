"""Capture: what the wrappers record of real builds."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from nestor.compiler.toolchain import Toolchain
from nestor.corpus import store
from nestor.corpus.capture import build, merge
from nestor.corpus.capture.drafts import Selection
from nestor.corpus.model import Input, Project, Split
from nestor.corpus.relink import LinkMode
from tests.corpus.builds import PARTLY_USED_LIBRARY, with_unused_files

if TYPE_CHECKING:
    from tests.corpus.conftest import SourceTree


def test_the_object_is_the_compilers_own(tree: SourceTree, toolchain: Toolchain) -> None:
    with_unused_files(tree)
    done = tree.cc("-O2", "-Wall", "-MD", "-c", "main.c", "-o", "main.o")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    subprocess.run(
        [toolchain.clang, "-O2", "-Wall", "-c", "main.c", "-o", "plain.o"],
        cwd=tree.source, check=True,
    )  # fmt: skip
    assert (tree.source / "main.o").read_bytes() == (tree.source / "plain.o").read_bytes()
    assert (tree.source / "main.d").read_text().startswith("main.o:")
    assert sorted(p.name for p in tree.source.iterdir()) == [
        "extra.c", "lib.c", "main.c", "main.d", "main.o", "plain.o",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("language", "text"),
    [
        ("c", "int g(int); int h(int x) { for (int i = 0; i < x; i++) g(i); return x; }"),
        (
            "c++",
            "#include <string>\n#include <stdexcept>\nstd::string f(int x) {"
            ' try { return std::to_string(x) + "!"; } catch (std::exception &) { return ""; } }',
        ),
    ],
)
def test_bitcode_compiles_to_what_the_source_compiles_to(
    tree: SourceTree, toolchain: Toolchain, tmp_path: Path, language: str, text: str
) -> None:
    name = "a.c" if language == "c" else "a.cpp"
    tree.write(name, text)
    run = tree.cc if language == "c" else tree.cxx
    run("-O3", "-g", "-fPIC", "-fno-plt", "-c", name, "-o", "a.o")
    (module,) = tree.finalise().modules
    assert module.language == language
    ours = tree.compile_module(tree.finalise(), module.name, tmp_path / "ours.o")
    flags = ["-Oz", "-g0", "-fPIC", "-fno-plt", "-ffunction-sections", "-fdata-sections"]
    driver = toolchain.clang if language == "c" else toolchain.clangxx
    subprocess.run(
        [driver, *flags, "-c", name, "-o", tmp_path / "theirs.o"], cwd=tree.source, check=True
    )
    assert ours.read_bytes() == (tmp_path / "theirs.o").read_bytes()


def test_digest_does_not_depend_on_the_folder(tree: SourceTree, tmp_path: Path) -> None:
    digests = []
    for name in ("one", "another-place"):
        tree = tree.another(tmp_path / name)
        with_unused_files(tree)
        tree.write("dated.c", "const char *when = __DATE__ __TIME__, *where = __FILE__;")
        source = str(tree.source / "dated.c")
        assert tree.cc("-c", source, "-o", str(tree.source / "dated.o")).returncode == 0
        tree.cc("main.c", "lib.c", "-o", "prog")
        digests.append(tree.finalise().digest)
    assert digests[0] == digests[1]


def test_one_command_compiles_and_links(tree: SourceTree, tmp_path: Path) -> None:
    with_unused_files(tree)
    assert tree.cc("main.c", "lib.c", "-o", "prog").returncode == 0
    corpus = tree.finalise()
    (program,) = corpus.programs
    assert program.modules == ("demo/main.o", "demo/lib.o")
    modes: tuple[LinkMode, ...] = ("gc", "no-gc", "icf")
    for mode in modes:
        made = tree.relink(corpus, program, tmp_path / mode, mode)
        assert subprocess.run([made], capture_output=True, text=True).stdout == "42 main.c"


def test_assembly_becomes_a_foreign_object(tree: SourceTree, tmp_path: Path) -> None:
    tree.write("main.c", "int f(void); int main(void) { return f(); }")
    tree.write("f.S", ".globl f\nf: mov $7, %eax\n ret\n.section .note.GNU-stack\n")
    assert tree.cc("-c", "f.S").returncode == 0
    assert tree.cc("-c", "main.c").returncode == 0
    assert tree.cc("main.o", "f.o", "-o", "prog").returncode == 0
    corpus = tree.finalise()
    (program,) = corpus.programs
    assert [i.kind for i in program.inputs] == ["module", "foreign"]
    store.verify(corpus)
    shutil.rmtree(tree.source)
    made = tree.relink(corpus, program, tmp_path / "relinked")
    assert subprocess.run([made]).returncode == 7


def test_parallel_make_loses_nothing(tree: SourceTree) -> None:
    count = 24
    for number in range(count):
        tree.write(f"f{number}.c", f"int f{number}(int x) {{ return x + {number}; }}")
    calls = "".join(f"int f{n}(int);" for n in range(count))
    total = "+".join(f"f{n}(1)" for n in range(count))
    tree.write("main.c", f"{calls} int main(void) {{ return ({total}) != {24 + 276}; }}")
    objects = " ".join(["main.o", *(f"f{n}.o" for n in range(count))])
    tree.write("Makefile", f"prog: {objects}\n\t$(CC) -o $@ $^\n")
    assert tree.run(["make", "-j2"]).returncode == 0
    corpus = tree.finalise()
    assert len(corpus.modules) == count + 1
    assert len(corpus.program("demo/prog").modules) == count + 1
    store.verify(corpus)


@pytest.mark.parametrize(
    "words",
    [
        ["-c", "conftest.c"],
        ["-E", "main.c"],
        ["-M", "main.c"],
        ["-S", "main.c", "-o", "main.s"],
        ["-fsyntax-only", "main.c"],
        ["-x", "c", "-c", "-", "-o", "stdin.o"],
        ["-c", "main.c", "-o", "/dev/null"],
        ["--version"],
        ["-c", "main.c", "-o", "CMakeFiles/CMakeScratch/TryCompile-x/main.o"],
    ],
)
def test_probes_are_not_captured(tree: SourceTree, words: list[str]) -> None:
    with_unused_files(tree)
    tree.write("conftest.c", "int main(void) { return 0; }")
    (tree.source / "CMakeFiles/CMakeScratch/TryCompile-x").mkdir(parents=True)
    assert tree.cc(*words).returncode == 0
    assert not tree.journal.root.exists()


@pytest.mark.parametrize("words", [["-print-prog-name=ld"], ["-dM", "-E", "-xc", os.devnull]])
def test_what_the_compiler_prints_is_printed_once(
    tree: SourceTree, toolchain: Toolchain, words: list[str]
) -> None:
    expected = subprocess.run([toolchain.clang, *words], capture_output=True, text=True).stdout
    done = tree.cc(*words)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == expected


def test_a_failing_compilation_fails_and_is_not_captured(tree: SourceTree) -> None:
    tree.write("bad.c", "int f( {")
    done = tree.cc("-c", "bad.c")
    assert done.returncode == 1
    assert "error:" in done.stderr
    assert not tree.journal.root.exists()


def test_a_failing_capture_does_not_break_the_build(tree: SourceTree) -> None:
    with_unused_files(tree)
    tree.wrappers.corpus.write_text("a file where the corpus should be")
    done = tree.cc("-c", "main.c")
    assert done.returncode == 0
    assert (tree.source / "main.o").exists()
    assert "not captured" in done.stderr


def test_warns_once_of_what_cannot_be_captured(tree: SourceTree) -> None:
    with_unused_files(tree)
    tree.cc("-shared", "-fPIC", "lib.c", "-o", "libshared.so")
    first = tree.cc("main.c", "./libshared.so", "-o", "one")
    second = tree.cc("main.c", "./libshared.so", "-o", "two")
    assert (first.returncode, second.returncode) == (0, 0)
    assert "shared library" in first.stderr
    assert second.stderr == ""
    corpus = tree.finalise()
    assert corpus.programs == ()
    assert [m.reason.split(":")[0] for m in corpus.missing] == ["one", "two"]


def test_start_files_that_a_link_names_are_left_to_the_driver(
    tree: SourceTree, tmp_path: Path, toolchain: Toolchain
) -> None:
    """As libtool does with libraries of C++; each of them may be in a link only once."""
    with_unused_files(tree)
    tree.cc("-c", "lib.c", "main.c")

    def place(name: str) -> str:
        command = [str(toolchain.clang), f"-print-file-name={name}"]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()

    first = [place(name) for name in ("Scrt1.o", "crti.o", "crtbeginS.o")]
    last = [place(name) for name in ("crtendS.o", "crtn.o")]
    done = tree.cc("-nostdlib", *first, "main.o", "lib.o", "-lc", *last, "-o", "prog")
    assert done.returncode == 0
    corpus = tree.finalise()
    (program,) = corpus.programs
    assert {item.kind for item in program.inputs} == {"module", "option"}
    made = tree.relink(corpus, program, tmp_path / "relinked")
    assert subprocess.run([made], capture_output=True, text=True).stdout == "42 main.c"


def test_twins_are_kept_only_if_programs_need_both(tree: SourceTree) -> None:
    tree.write("main.c", "int g; int f(void); int main(void) { return f(); }")
    tree.write("lib.c", "extern int g; int f(void) { return g; }")
    (tree.source / "nopic").mkdir()
    tree.cc("-c", "main.c", "-o", "main.o")
    tree.cc("-c", "-fPIC", "lib.c", "-o", "lib.o")
    tree.cc("-c", "-fno-pic", "lib.c", "-o", "nopic/lib.o")
    tree.cc("main.o", "nopic/lib.o", "-no-pie", "-o", "one")
    assert {m.name for m in tree.finalise().modules} == {"demo/main.o", "demo/nopic/lib.o"}
    tree.cc("main.o", "lib.o", "-o", "two")
    corpus = tree.finalise()
    assert {m.name for m in corpus.modules} == {"demo/main.o", "demo/lib.o", "demo/nopic/lib.o"}
    assert Input("option", "-no-pie") in corpus.program("demo/one").inputs
    assert Input("option", "-no-pie") not in corpus.program("demo/two").inputs


def test_a_changed_source_replaces_its_module(tree: SourceTree) -> None:
    with_unused_files(tree)
    tree.cc("main.c", "lib.c", "-o", "prog")
    tree.cc("-c", "lib.c")
    before = tree.finalise()
    tree.write("lib.c", PARTLY_USED_LIBRARY.replace("14", "15"))
    tree.cc("-c", "lib.c")
    tree.cc("main.c", "lib.o", "-o", "prog")
    after = tree.finalise()
    assert before.module("demo/lib.o").digest != after.module("demo/lib.o").digest
    assert len(after.modules) == 2
    assert tree.finalise() == after  # Merging twice changes nothing.


def test_equal_modules_of_two_projects_stay_with_the_held_out_one(
    tree: SourceTree, tmp_path: Path
) -> None:
    root = tmp_path / "corpus"
    splits: dict[str, Split] = {"a": "train", "b": "test"}
    for name, split in splits.items():
        tree = tree.another(tmp_path / name, name)
        with_unused_files(tree)
        tree.cc("main.c", "lib.c", "-o", "prog")
        project = Project(name, split=split)
        merge.finalise(root, tree.journal, [Selection(project)])
    corpus = store.load(root)
    assert {m.name for m in corpus.modules} == {"b/main.o", "b/lib.o"}
    assert corpus.program("a/prog").modules == ("b/main.o", "b/lib.o")
    assert [p.name for p in corpus.programs_of("test")] == ["b/prog"]
    assert not (root / "a/main.o.bc").exists() or "a/main.o" not in corpus.by_name


def test_the_wrapper_is_light(tree: SourceTree) -> None:
    """No import that costs tens of milliseconds may slip into the wrapper."""
    code = "import sys; import nestor.cli.corpus.cc; print(*sys.modules)"
    package = str(Path(build.__file__).parents[2])
    loaded = tree.run(
        ["python3", "-c", code], more={"PYTHONPATH": package, "PATH": os.environ["PATH"]}
    ).stdout.split()
    heavy = {"dataclasses", "inspect", "rich", "tyro", "numpy", "subprocess", "typing_extensions"}
    assert not heavy & set(loaded)


def test_a_relative_corpus_is_refused(tree: SourceTree) -> None:
    with_unused_files(tree)
    done = tree.run([str(tree.wrappers.cc), "-c", "main.c"], more={"NESTOR_CORPUS": "corpus"})
    assert (done.returncode, (tree.source / "main.o").exists()) == (0, True)
    assert "not captured: NESTOR_CORPUS is the relative path corpus" in done.stderr
    assert not (tree.source / "corpus").exists()


def test_the_wrapper_works_without_a_corpus(tree: SourceTree) -> None:
    with_unused_files(tree)
    environment = {"NESTOR_CORPUS": ""}
    start = time.monotonic()
    done = tree.run([str(tree.wrappers.cc), "-c", "main.c"], more=environment)
    assert done.returncode == 0
    assert time.monotonic() - start < 20
    assert not tree.journal.root.exists()


@pytest.mark.parametrize(("word", "language"), [("cc", "c"), ("c++", "c++")])
def test_the_command_line_makes_the_same_corpus(tree: SourceTree, word: str, language: str) -> None:
    with_unused_files(tree)
    tree.write("Makefile", "prog: main.o lib.o\n\t$(CC) -o $@ $^\n")
    entry = "import sys; from nestor.cli.main import entry; sys.argv[0] = 'nestor'; entry()"
    wrapper = f'{sys.executable} -c "{entry}" {word}'
    package = str(Path(build.__file__).parents[2])
    done = tree.run(["make", f"CC={wrapper}"], more={"PYTHONPATH": package})
    assert done.returncode == 0, done.stderr
    corpus = tree.finalise()
    assert corpus.program("demo/prog").language == language
    assert len(corpus.modules) == 2
