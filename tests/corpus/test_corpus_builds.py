"""Capture of whole builds: CMake with its ways of hiding the compiler, response files, modules."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from nestor.corpus.capture import build
from nestor.corpus.capture.database import DatabaseError
from nestor.corpus.model import NO_MODULES
from tests.corpus.builds import LIBRARY, LISTS, MAIN, runs, stock, with_library

if TYPE_CHECKING:
    from nestor.compiler.toolchain import Toolchain
    from tests.corpus.conftest import SourceTree


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


def test_a_meson_project_with_precompiled_headers(tree: SourceTree, tmp_path: Path) -> None:
    tree.write(
        "meson.build",
        "project('demo', 'cpp', default_options: ['buildtype=release'])\n"
        "lib = static_library('l', 'lib.cpp', cpp_pch: 'pch/own.h')\n"
        "executable('prog', 'main.cpp', link_with: lib, cpp_pch: 'pch/own.h')\n",
    )
    tree.write("pch/own.h", "#include <vector>\ninline int half(int x) { return x / 2; }\n")
    tree.write("lib.cpp", "int f(const std::vector<int> &v) { return half(v[0]); }\n")
    tree.write(
        "main.cpp",
        "int f(const std::vector<int> &v);\n"
        "int main() { std::vector<int> v{4}; return f(v) - 2; }\n",
    )
    unnamed = {"NESTOR_PROJECT": "", "NESTOR_SOURCE": ""}
    assert tree.run(["meson", "setup", "b"], more=unnamed).returncode == 0
    done = tree.run(["ninja", "-C", "b"], more=unnamed)
    assert (done.returncode, done.stderr) == (0, "")
    corpus = tree.finalise()
    assert corpus.missing == ()
    assert len(corpus.program("source/prog").modules) == 2
    assert runs(tree, "source/prog", tmp_path / "relinked")


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


def test_the_usual_names_of_the_compiler_are_wrapped(tree: SourceTree) -> None:
    tree.write("a.c", "int a;\n")
    major = tree.wrappers.toolchain.version.partition(".")[0]
    assert tree.run([f"clang-{major}", "-c", "a.c"]).returncode == 0
    assert len(tree.finalise().modules) == 1
    # Without our environment the wrapper is that compiler, not a loop of wrappers.
    path = f"{tree.wrappers.folder}:{os.environ['PATH']}"
    command = ["env", "-i", f"PATH={path}", f"clang-{major}", "--version"]
    assert "clang version" in tree.run(command).stdout


def test_a_compiler_cache_hides_nothing(tree: SourceTree) -> None:
    """A cache answers a compilation that it has seen, so that the wrapper is not called."""
    tree.write("a.c", "int a;\n")
    cache = {"CCACHE_DIR": str(tree.source.parent / "cache")}
    command = ["ccache", str(tree.wrappers.cc), "-c", "a.c"]
    plain = {**cache, "NESTOR_CORPUS": "", "CCACHE_DISABLE": "", "PATH": os.environ["PATH"]}
    ccache = [*("env", "-u", "CCACHE_DISABLE"), *command]
    for _ in range(2):
        assert tree.run(ccache, more=plain).returncode == 0
    assert tree.run(command, more=cache).returncode == 0
    assert len(tree.finalise().modules) == 1


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


def test_a_source_that_refuses_the_level_is_named_in_plain_words(tree: SourceTree) -> None:
    tree.write("a.c", "#ifdef __OPTIMIZE_SIZE__\n#error too small\n#endif\nint a;\n")
    done = tree.cc("-O2", "-fcolor-diagnostics", "-c", "a.c")
    reason = "a.c:2:2: error: too small"
    assert (done.returncode, done.stderr) == (
        0, f"nestor: a.c was built but not captured: {reason}\n",
    )  # fmt: skip
    assert [m.reason for m in tree.finalise().missing] == [f"a.c: {reason}"]


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


def test_compilation_database(tree: SourceTree, toolchain: Toolchain, tmp_path: Path) -> None:
    tree.write("main.c", MAIN)
    tree.write("sub/x.cpp", "template <class T> T twice(T x) { return 2 * x; } int i = twice(2);")
    entries = [
        {"directory": str(tree.source), "file": "main.c", "command": "gcc -O2 -c main.c -o m.o"},
        {
            "directory": str(tree.source / "sub"),
            "file": "x.cpp",
            "arguments": ["/usr/bin/c++", "-std=c++17", "-c", "x.cpp", "-o", "x.o"],
        },
    ]
    database = tree.write("compile_commands.json", json.dumps(entries))
    replayed = build.replay_database(database, tree.wrappers.corpus, "demo", toolchain)
    assert (replayed.compilations, replayed.links) == (2, 0)
    corpus = tree.finalise()
    assert [(m.name, m.language) for m in corpus.modules] == [
        ("demo/m.o", "c"), ("demo/sub/x.o", "c++"),
    ]  # fmt: skip
    assert not (tree.source / "m.o").exists()
    database.write_text('{"not": "a list"}')
    with pytest.raises(DatabaseError, match=r"compile_commands\.json"):
        build.replay_database(database, tree.wrappers.corpus, "demo", toolchain)


def test_cmake_and_a_makefile_with_a_fixed_compiler(tree: SourceTree) -> None:
    tree.write("main.c", MAIN)
    tree.write("lib.c", LIBRARY)
    tree.write(
        "CMakeLists.txt",
        "cmake_minimum_required(VERSION 3.13)\nproject(demo C)\nadd_library(l STATIC lib.c)\n"
        "add_executable(prog main.c)\ntarget_link_libraries(prog l)\n",
    )
    assert tree.run(["cmake", "-G", "Ninja", "-S", ".", "-B", "b"]).returncode == 0
    assert not tree.journal.root.exists()
    assert tree.run(["ninja", "-C", "b", "-j2"]).returncode == 0
    tree.write("Makefile", "CC = gcc\nother: main.c lib.c\n\t$(CC) -o $@ $^\n")
    assert tree.run(["make"]).returncode == 0
    corpus = tree.finalise()
    assert {p.name for p in corpus.programs} == {"demo/prog", "demo/other"}


def test_a_response_file_may_be_longer_than_a_command_line(tree: SourceTree) -> None:
    tree.write("main.c", "int main(void) { return 0; }\n")
    tree.write("long.rsp", "main.o -o prog " + f"-L/{'long' * 250}\n" * 2500)
    assert tree.cc("-c", "main.c").returncode == 0
    done = tree.cc("@long.rsp")
    assert (done.returncode, done.stderr) == (0, "")
    assert tree.finalise().program("demo/prog").modules == ("demo/main.o",)
