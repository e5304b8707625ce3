"""Summaries of programs: every number is one that can be counted in the sources."""

import os
import subprocess
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nestor.compiler.objects import ObjectError, measure
from nestor.compiler.toolchain import Toolchain
from nestor.corpus.model import Input, Program
from nestor.corpus.relink import LinkMode
from nestor.problems.inlining_size.summary.object_uses import read, summarise
from nestor.problems.inlining_size.summary.program_summary import (
    FunctionUse,
    ProgramSummary,
    SummaryError,
    function_id,
    load,
    module_id,
    parse,
)
from nestor.problems.inlining_size.summary.summaries import exports_functions

HEADER = """
int sink(int);
inline int shared(int v) { return sink(v) * 3 + v; }
struct Box { Box(int v); int value; };
"""
ONE = (
    HEADER
    + """
static int helper(int v) { return shared(v) - sink(v + 1); }
static int taken(int v) { return sink(v) + 1; }
int (*table[])(int) = {taken};
int one(int v) {
  switch (v) {
    case 0: return helper(v); case 1: return helper(2); case 2: return sink(3);
    case 3: return sink(v + 5); case 4: return sink(v * v); case 5: return sink(v - 8);
  }
  return shared(v);
}
int again(int v) { return one(v) + one(v + 1) + Box(v).value; }
"""
)
TWO = (
    HEADER
    + """
static int helper(int v) { return sink(v) ^ 5; }
Box::Box(int v) : value(sink(v)) {}
int one(int);
int two(int v) { return one(v) + helper(v) + shared(v) + Box(v).value; }
int again(int);
int (*address())(int) { return again; }
int lonely(int v) { return v; }
"""
)


def compiled(
    toolchain: Toolchain, folder: Path, flags: Sequence[str] = ("-ffunction-sections",)
) -> list[Path]:
    """The two sources, through bitcode as a corpus's modules are."""
    objects = []
    for name, text in (("one", ONE), ("two", TWO)):
        source, bitcode, out = (folder / f"{name}{suffix}" for suffix in (".cpp", ".bc", ".o"))
        source.write_text(text)
        common = ["-O1", "-fPIC", "-fno-inline", *flags, "-c"]
        emit = ["-emit-llvm", "-Xclang", "-disable-llvm-passes"]
        subprocess.run([toolchain.clangxx, *common, *emit, source, "-o", bitcode], check=True)
        subprocess.run([toolchain.clang, *common, "-x", "ir", bitcode, "-o", out], check=True)
        objects.append(out)
    return objects


def local(name: str, source: str) -> int:
    return function_id(f"_ZL{len(name)}{name}i", source)


def test_counts(toolchain: Toolchain, tmp_path: Path) -> None:
    summary = summarise(compiled(toolchain, tmp_path), "gc")

    def use(key: int) -> tuple[int, int, int, bool]:
        found = summary.functions[key]
        assert found.bytes > 0
        return found.copies, found.calls, found.users, found.address_taken

    assert use(function_id("_Z6sharedi")) == (2, 3, 0, False)
    # Its jump table is no use of its address.
    assert use(function_id("_Z3onei")) == (1, 3, 1, False)
    assert use(function_id("_Z5againi")) == (1, 0, 1, True)
    assert use(function_id("_Z3twoi")) == (1, 0, 0, False)
    assert use(function_id("_Z6lonelyi")) == (1, 0, 0, False)
    assert use(local("helper", "one.cpp")) == (1, 2, 0, False)
    assert use(local("helper", "two.cpp")) == (1, 1, 0, False)
    assert use(local("taken", "one.cpp")) == (1, 0, 0, True)
    # Both names of the constructor; the other object calls the one, its own the other.
    assert use(function_id("_ZN3BoxC1Ei")) == use(function_id("_ZN3BoxC2Ei")) == (1, 2, 1, False)
    assert function_id("_Z4sinki") not in summary.functions


def test_bytes_are_those_of_the_largest_copy(toolchain: Toolchain, tmp_path: Path) -> None:
    objects = compiled(toolchain, tmp_path)
    summary = summarise(objects, "gc")
    for path in objects:
        for function in measure(path).functions:
            if not function.name.startswith("_ZL"):
                assert summary.functions[function_id(function.name)].bytes >= function.size
    (two,) = (f for f in measure(objects[1]).functions if f.name == "_Z3twoi")
    assert summary.functions[function_id("_Z3twoi")].bytes == two.size


def test_without_function_sections(toolchain: Toolchain, tmp_path: Path) -> None:
    """Calls within a section need no relocation and are not seen; definitions are."""
    objects = compiled(toolchain, tmp_path)
    assert all(read(path).apart and read(path).by_clang for path in objects)
    apart = summarise(objects, "no-gc")
    objects = compiled(toolchain, tmp_path, ["-fno-function-sections"])
    together = summarise(objects, "no-gc")
    assert not any(read(path).apart for path in objects)
    assert together.functions.keys() == apart.functions.keys()
    for key, use in together.functions.items():
        assert use.copies == apart.functions[key].copies
        assert use.calls <= apart.functions[key].calls


def test_debug_information_refers_to_nothing(toolchain: Toolchain, tmp_path: Path) -> None:
    plain = summarise(compiled(toolchain, tmp_path), "gc")
    described = summarise(compiled(toolchain, tmp_path, ["-ffunction-sections", "-g"]), "gc")
    assert described == plain


EXPORTING = """
#define HIDDEN __attribute__((visibility("hidden")))
#define PROTECTED __attribute__((visibility("protected")))
int sink(int);
int exported(int v) { return sink(v); }
PROTECTED int kept(int v) { return sink(v) + 1; }
HIDDEN int hidden(int v) { return sink(v) + 2; }
static int internal(int v) { return sink(v) + 3; }
inline int everywhere(int v) { return sink(v) + 4; }
extern "C" int main() {
  return exported(1) + kept(2) + hidden(3) + internal(4) + everywhere(5);
}
"""
"""A function of each linkage, called once."""


def test_a_shared_library_keeps_what_it_exports(toolchain: Toolchain, tmp_path: Path) -> None:
    """What the linker really keeps without a call is as if others called it and took it."""
    source, out = tmp_path / "all.cpp", tmp_path / "all.o"
    source.write_text(EXPORTING)
    common = [str(toolchain.clangxx), "-fPIC", "-ffunction-sections", "-fno-inline"]
    subprocess.run([*common, "-O1", "-c", source, "-o", out], check=True)
    program, library = (summarise([out], "gc", exports=each) for each in (False, True))
    names = {
        "_Z8exportedi": True,
        "_Z4kepti": True,
        "_Z6hiddeni": False,
        "_Z10everywherei": False,
        "main": True,
    }
    for name, exported in names.items():
        before, after = (each.functions[function_id(name)] for each in (program, library))
        assert not before.address_taken
        more = (before.calls + exported, before.users + exported)
        assert after == replace(before, calls=more[0], users=more[1], address_taken=exported)
    own = library.functions[local("internal", "all.cpp")]
    assert (own.calls, own.address_taken) == (1, False)
    # The linker agrees about what stays when the one call of each is inlined.
    linked = tmp_path / "all.so"
    options = ["-O2", "-fPIC", "-ffunction-sections", "-fuse-ld=lld", "-nostdlib", "-shared"]
    line = [str(toolchain.clangxx), *options, "-Wl,--gc-sections", str(source), "-o", str(linked)]
    subprocess.run(line, check=True)
    nm = [str(toolchain.clang.with_name("llvm-nm")), str(linked)]
    symbols = subprocess.run(nm, check=True, capture_output=True, text=True).stdout
    for name, exported in names.items():
        assert (f" T {name}\n" in symbols) == exported


def test_programs_that_export() -> None:
    def program(*options: str) -> Program:
        inputs = [Input("module", "m"), *(Input("option", word) for word in options)]
        return Program("p/p", "p", "c", tuple(inputs))

    exporting = [
        ["-shared"],
        ["-pthread", "-Wl,--export-dynamic"],
        ["-Wl,-E"],
        ["-Wl,--as-needed,-E"],
        ["-Wl,--dynamic-list=plugins.txt"],
        ["-Wl,--export-dynamic-symbol=plugin_*"],
    ]
    assert all(exports_functions(program(*options)) for options in exporting)
    others = [[], ["-pthread", "-static", "-lm"], ["-Wl,-soname,-Esel", "-Wl,--exclude-libs,ALL"]]
    assert not any(exports_functions(program(*options)) for options in others)


def test_text(tmp_path: Path) -> None:
    uses = {255: FunctionUse(2, 58, 7, 1, False), 1: FunctionUse(1, 9, 0, 0, True)}
    summary = ProgramSummary("icf", uses)
    summary.save(tmp_path / "p")
    assert (tmp_path / "p").read_text() == (
        "nestor-program 1\nlink icf\n"
        "function 0000000000000001 1 9 0 0 1\n"
        "function 00000000000000ff 2 58 7 1 0\n"
    )
    assert [p.name for p in tmp_path.iterdir()] == ["p"]
    assert load(tmp_path / "p") == summary


@given(
    st.sampled_from(["gc", "no-gc", "icf"]),
    st.dictionaries(
        st.integers(0, 2**64 - 1),
        st.builds(FunctionUse, *[st.integers(0, 2**53)] * 4, st.booleans()),
    ),
)
def test_what_is_written_is_read(link: LinkMode, uses: dict[int, FunctionUse]) -> None:
    summary = ProgramSummary(link, uses)
    assert parse(summary.to_text()) == summary


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "no summary"),
        ("nestor-overrides 1\n", "no summary"),
        ("nestor-program 2\nlink gc\n", "of another format"),
        ("nestor-program 1\n", "no line 'link"),
        ("nestor-program 1\nlink lto\n", "Line 2 is neither"),
        ("nestor-program 1\nlink gc\nlink gc\n", "Line 3 is neither"),
        ("nestor-program 1\nlink gc\n# so\n\nfunction 1 2 3 4 5 1\n", "Line 5 is neither"),
        (f"nestor-program 1\nlink gc\nfunction {'f' * 16} 1 2 3 4 2\n", "Line 3 is neither"),
        (f"nestor-program 1\nlink gc\nfunction {'f' * 16} 1 2 {2**53 + 1} 4 1\n", "Line 3 is"),
        (f"nestor-program 1\nlink gc\nfunction {'f' * 16} 1 2 ٣ 4 1\n", "Line 3 is neither"),
        ("nestor-program 1\nlink gc\n" + f"function {1:016x} 1 2 3 4 0\n" * 2, "Line 4 gives"),
        ("nestor-program\t1\nlink gc\n", "no summary"),
        ("nestor-program 1\nlink\tgc\n", "Line 2 is neither"),
        (f"nestor-program 1\nlink gc\nfunction\t{1:016x} 1 2 3 4 0\n", "Line 3 is neither"),
        (f"nestor-program 1\nlink gc\vfunction {1:016x} 1 2 3 4 0\n", "Line 2 is neither"),
    ],
)
def test_what_is_no_summary(text: str, said: str, tmp_path: Path) -> None:
    path = tmp_path / "wrong.txt"
    path.write_text(text)
    with pytest.raises(SummaryError, match=f"wrong.txt: .*{said}.* Make it anew with 'nestor"):
        load(path)


def test_what_stands_around_the_words_does_not_count() -> None:
    text = f"\t\n#\r\n nestor-program  1\t\r\n\flink gc#\u2028x\n\vfunction {1:016x} 1 2  3 4 0"
    assert parse(text) == ProgramSummary("gc", {1: FunctionUse(1, 2, 3, 4, False)})


def test_ids() -> None:
    # xxh3-64 of the empty text, by its reference implementation.
    assert function_id("") == module_id("folder/") == 0x2D06800538D394C2
    assert function_id("f", "a/b/c.c") == function_id("f", "c.c") != function_id("f")
    assert module_id("a/b/c.c") == module_id("c.c") == function_id("c.c")


def test_what_is_no_object(toolchain: Toolchain, tmp_path: Path) -> None:
    sound = compiled(toolchain, tmp_path)[0].read_bytes()
    path = tmp_path / "wrong.o"
    for data in (b"", b"text", sound[: len(sound) // 2], sound[:18] + b"\xb7" + sound[19:]):
        path.write_bytes(data)
        with pytest.raises(ObjectError):
            summarise([path], "gc")


def test_what_nobody_would_summarise_is_not_read(tmp_path: Path) -> None:
    """Neither a device without an end, nor a pipe without a writer, nor a file of gigabytes."""
    pipe, large = tmp_path / "pipe", tmp_path / "large"
    os.mkfifo(pipe)
    with large.open("wb") as file:
        file.truncate(2 << 30)
    for path in (pipe, large, Path("/dev/zero"), tmp_path, tmp_path / "absent"):
        with pytest.raises(SummaryError, match=f"{path} cannot be read as a summary.*makes such"):
            load(path)
