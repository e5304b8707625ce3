"""Capture of whole builds: CMake with its ways of hiding the compiler, response files, modules."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from nestor.corpus import store
from nestor.corpus.model import NO_MODULES

if TYPE_CHECKING:
    from nestor.compiler.toolchain import Toolchain
    from tests.corpus.conftest import SourceTree

PACKAGE = str(Path(store.__file__).parents[2])
MAIN = "int f(int); int main(void) { return f(3) - 6; }\n"
LIBRARY = "int f(int x) { return 2 * x; }\n"
LISTS = "cmake_minimum_required(VERSION 3.16)\nproject(demo C CXX)\n"


def nestor(*words: str, cwd: Path, corpus: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Run a command as a user does, in a shell without any of our variables."""
    command = [sys.executable, "-c", "from nestor.cli.main import entry; entry()", *words]
    plain = {k: v for k, v in os.environ.items() if not k.startswith("NESTOR_")}
    plain |= {"PYTHONPATH": PACKAGE, "CC": "gcc", "CXX": "g++"}
    if corpus is not None:
        plain["NESTOR_CORPUS"] = str(corpus)
    return subprocess.run(
        command, capture_output=True, text=True, cwd=cwd, env=plain, check=False, timeout=120
    )


def stock(*words: str | Path, cwd: Path) -> None:
    """Run a command of a build that knows nothing of Nestor."""
    environment = {**os.environ, "CC": "gcc", "CXX": "g++"}
    subprocess.run(words, cwd=cwd, env=environment, check=True, capture_output=True, timeout=120)


def with_library(tree: SourceTree) -> None:
    tree.write("main.c", MAIN)
    tree.write("lib/lib.c", LIBRARY)
    tree.write("lib/CMakeLists.txt", "add_library(l STATIC lib.c)\n")
    tree.write(
        "CMakeLists.txt",
        f"{LISTS}add_subdirectory(lib)\nadd_executable(prog main.c)\n"
        "target_link_libraries(prog l)\n",
    )


def runs(tree: SourceTree, program: str, folder: Path) -> bool:
    """Tell whether a program, linked again from the corpus alone, succeeds."""
    corpus = store.load(tree.wrappers.corpus)
    made = tree.relink(corpus, corpus.program(program), folder)
    return subprocess.run([made], check=False).returncode == 0


@pytest.mark.parametrize("generator", ["Ninja", "Unix Makefiles"])
def test_a_cmake_project_with_precompiled_headers(
    tree: SourceTree, tmp_path: Path, generator: str
) -> None:
    tree.write(
        "CMakeLists.txt",
        f"{LISTS}add_executable(prog main.cpp lib.cpp)\n"
        'target_precompile_headers(prog PRIVATE <vector> "own.h")\n',
    )
    tree.write("own.h", "inline int half(int x) { return x / 2; }\n")  # not guarded
    tree.write("lib.cpp", "int f(const std::vector<int> &v) { return half(v[0]); }\n")
    tree.write(
        "main.cpp",
        "int f(const std::vector<int> &v);\n"
        "int main() { std::vector<int> v{4}; return f(v) - 2; }\n",
    )
    configure = ["cmake", "-G", generator, "-S", ".", "-B", "b", "-DCMAKE_BUILD_TYPE=Release"]
    assert tree.run(configure).returncode == 0
    done = tree.run(["cmake", "--build", "b"])
    assert (done.returncode, done.stderr) == (0, "")
    corpus = tree.finalise()
    assert corpus.missing == ()
    assert len(corpus.modules) == len(corpus.program("demo/prog").modules) == 2
    assert runs(tree, "demo/prog", tmp_path / "relinked")


def test_a_precompiled_header_gives_the_module_of_its_headers(
    tree: SourceTree, toolchain: Toolchain, tmp_path: Path
) -> None:
    tree.write("own.h", "static inline int half(int x) { return x / 2; }\n")
    tree.write("a.c", "int f(int x) { return half(x) + half(x + 1); }\n")
    assert tree.cc("-O2", "-g", "-x", "c-header", "own.h", "-o", "other-name").returncode == 0
    done = tree.cc("-O2", "-g", "-include-pch", "other-name", "-c", "a.c")
    assert (done.returncode, done.stderr) == (0, "")
    (module,) = tree.finalise().modules
    ours = tree.compile_module(tree.finalise(), module.name, tmp_path / "ours.o")
    flags = ["-Oz", "-g0", "-ffunction-sections", "-fdata-sections", "-include", "own.h"]
    theirs = tmp_path / "theirs.o"
    stock(toolchain.clang, *flags, "-c", "a.c", "-o", theirs, cwd=tree.source)
    assert ours.read_bytes() == theirs.read_bytes()


def test_a_precompiled_header_of_before_is_found_by_its_name_or_named(
    tree: SourceTree, toolchain: Toolchain
) -> None:
    tree.write("own.h", "static inline int half(int x) { return x / 2; }\n")
    for name in ("own.h.pch", "other-name"):
        stock(toolchain.clang, "-O2", "-x", "c-header", "own.h", "-o", name, cwd=tree.source)
    tree.write("a.c", "int f(int x) { return half(x); }\n")
    tree.write("b.c", "int g(int x) { return half(x); }\n")
    assert tree.cc("-O2", "-include", "own.h", "-c", "a.c").stderr == ""
    done = tree.cc("-O2", "-include-pch", "other-name", "-c", "b.c")
    assert done.returncode == 0
    assert "delete it and build again" in done.stderr
    assert [m.name for m in tree.finalise().modules] == ["demo/a.o"]


def test_options_in_response_files_count(tree: SourceTree, tmp_path: Path) -> None:
    tree.write("main.c", MAIN)
    tree.write("lib.c", LIBRARY)
    tree.write("compile.rsp", "-O2 -flto -c @more.rsp\n")
    tree.write("more.rsp", '"-DNAME=a b"\n')
    tree.write("link.rsp", "main.o lib.o -o prog\n")
    for name in ("main.c", "lib.c"):
        assert tree.cc("@compile.rsp", name).returncode == 0
    assert tree.cc("-flto", "-fuse-ld=lld", "@link.rsp").returncode == 0
    corpus = tree.finalise()
    assert (corpus.missing, len(corpus.program("demo/prog").modules)) == ((), 2)
    assert runs(tree, "demo/prog", tmp_path / "relinked")
    tree.write("check.rsp", "-fsyntax-only\n")
    assert tree.cc("@check.rsp", "-c", "lib.c").returncode == 0
    assert len(list(tree.journal.compiles())) == 2


def test_modules_of_cxx20_are_modules_of_the_corpus(tree: SourceTree, tmp_path: Path) -> None:
    tree.write("m.cppm", "export module m;\nexport int f(int x) { return 2 * x; }\n")
    tree.write("main.cpp", "import m;\nint main() { return f(2) - 4; }\n")
    flags = ["-std=c++20", "-O2"]
    for words in (
        ["--precompile", "m.cppm", "-o", "m.pcm"],
        ["-c", "m.pcm", "-o", "m.o"],
        ["-fmodule-file=m=m.pcm", "-c", "main.cpp"],
    ):
        before = (tree.source / "m.pcm").read_bytes() if (tree.source / "m.pcm").exists() else b""
        done = tree.cxx(*flags, *words)
        assert (done.returncode, done.stderr) == (0, "")
    assert (tree.source / "m.pcm").read_bytes() == before
    assert tree.cxx("main.o", "m.o", "-o", "prog").returncode == 0
    assert len(tree.finalise().program("demo/prog").modules) == 2
    assert runs(tree, "demo/prog", tmp_path / "relinked")


def test_what_a_compilation_writes_beside_the_object_is_the_compilers_own(
    tree: SourceTree, toolchain: Toolchain
) -> None:
    tree.write("m.cppm", "export module m;\nexport int f(int x) { return 2 * x; }\n")
    command = ["-std=c++20", "-O2", "-fmodule-output=m.pcm", "-c", "m.cppm", "-o", "m.o"]
    stock(toolchain.clangxx, *command, cwd=tree.source)
    expected = (tree.source / "m.pcm").read_bytes()
    assert tree.cxx(*command).returncode == 0
    assert (tree.source / "m.pcm").read_bytes() == expected
    assert len(tree.finalise().modules) == 1


@pytest.mark.parametrize("generator", ["Ninja", "Unix Makefiles"])
def test_the_wrappers_alone_find_one_project_in_subfolders(
    tree: SourceTree, tmp_path: Path, generator: str
) -> None:
    with_library(tree)
    unnamed = {"NESTOR_PROJECT": "", "NESTOR_SOURCE": ""}
    assert tree.run(["cmake", "-G", generator, "-S", ".", "-B", "b"], more=unnamed).returncode == 0
    assert tree.run(["cmake", "--build", "b"], more=unnamed).returncode == 0
    corpus = tree.finalise()
    assert [p.name for p in corpus.projects] == ["source"]
    assert len(corpus.program("source/prog").modules) == 2
    assert runs(tree, "source/prog", tmp_path / "relinked")


def test_a_recursive_make_is_one_project(tree: SourceTree) -> None:
    tree.write("main.c", MAIN)
    tree.write("lib/lib.c", LIBRARY)
    tree.write("lib/Makefile", "all:\n\t$(CC) -c lib.c\n")
    tree.write("Makefile", "prog: main.c\n\t$(MAKE) -C lib\n\t$(CC) main.c lib/lib.o -o prog\n")
    assert tree.run(["make"], more={"NESTOR_PROJECT": "", "NESTOR_SOURCE": ""}).returncode == 0
    corpus = tree.finalise()
    assert [p.name for p in corpus.projects] == ["source"]
    assert len(corpus.program("source/prog").modules) == 2


def test_a_program_may_use_modules_of_another_project(tree: SourceTree, tmp_path: Path) -> None:
    tree.write("main.c", MAIN)
    tree.write("lib.c", LIBRARY)
    for project, name in (("one", "lib.c"), ("two", "main.c")):
        command = [str(tree.wrappers.cc), "-c", name]
        assert tree.run(command, more={"NESTOR_PROJECT": project}).returncode == 0
    command = [str(tree.wrappers.cc), "main.o", "lib.o", "-o", "prog"]
    assert tree.run(command, more={"NESTOR_PROJECT": "two"}).returncode == 0
    corpus = tree.finalise()
    assert corpus.program("two/prog").modules == ("two/main.o", "one/lib.o")
    assert runs(tree, "two/prog", tmp_path / "relinked")


def test_equal_names_outside_of_the_source_tree_are_several_modules(tree: SourceTree) -> None:
    outside = tree.source.parent / "elsewhere"
    for number, folder in enumerate(("a", "b")):
        (outside / folder).mkdir(parents=True)
        (outside / folder / "x.c").write_text(f"int f{number}(void) {{ return {number}; }}\n")
        words = ["-c", str(outside / folder / "x.c"), "-o", str(outside / folder / "x.o")]
        assert tree.cc(*words).returncode == 0
    assert [m.name for m in tree.finalise().modules] == ["demo/x-2.o", "demo/x.o"]


def test_a_build_that_keeps_its_compiler_is_explained(tree: SourceTree) -> None:
    with_library(tree)
    stock("cmake", "-S", ".", "-B", "b", cwd=tree.source)
    capture = ["corpus", "capture", "--out", str(tree.wrappers.corpus)]
    done = nestor(*capture, "--", "cmake", "--build", "b", cwd=tree.source)
    assert done.returncode == 1
    assert "called no compiler through Nestor" in done.stderr
    assert "--compile-commands" in done.stderr
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


def test_a_program_without_modules_is_no_program(tree: SourceTree) -> None:
    tree.write("a.S", ".globl main\nmain: xor %eax, %eax\n ret\n.section .note.GNU-stack\n")
    assert tree.cc("-c", "a.S").returncode == 0
    assert tree.cc("a.o", "-o", "prog").returncode == 0
    corpus = tree.finalise()
    assert corpus.programs == ()
    assert [m.reason for m in corpus.missing] == [f"prog: {NO_MODULES}"]


def test_what_failed_is_said_of_a_project_without_modules(tree: SourceTree) -> None:
    tree.write("a.S", ".globl main\nmain: xor %eax, %eax\n ret\n.section .note.GNU-stack\n")
    assert tree.cc("a.S", "-o", "prog").returncode == 0
    (lost,) = tree.finalise().missing
    assert lost.project == "demo"
    assert "assembles itself" in lost.reason


def test_what_failed_once_and_succeeded_since_is_not_missing(tree: SourceTree) -> None:
    tree.write("own.h", "static inline int half(int x) { return x / 2; }\n")
    clang = tree.wrappers.toolchain.clang
    stock(clang, "-O2", "-x", "c-header", "own.h", "-o", "other-name", cwd=tree.source)
    tree.write("a.c", "int f(int x) { return half(x); }\n")
    use = ["-O2", "-include-pch", "other-name", "-c", "a.c"]
    assert tree.cc(*use).returncode == 0
    (lost,) = tree.finalise().missing
    assert "other-name" in lost.reason
    assert tree.cc("-O2", "-x", "c-header", "own.h", "-o", "other-name").returncode == 0
    assert tree.cc(*use).returncode == 0
    assert (tree.finalise().missing, len(tree.finalise().modules)) == ((), 1)
