"""Builds with a profile: the modules of the corpus are compiled with it, too."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from nestor.compiler.options import safe_cc1
from nestor.compiler.toolchain import Toolchain
from nestor.corpus import store
from nestor.corpus.codegen.make import make_codegen_corpus
from nestor.corpus.exchange import export, import_
from nestor.corpus.model import Corpus, CorpusError

if TYPE_CHECKING:
    from tests.corpus.conftest import SourceTree

# What is hot and what is cold decides what is inlined.
PROGRAM = """
#include <stdio.h>
static long work(long v, long n) { for (long i = 0; i < n; ++i) v = v * 7 / 3 + i; return v; }
static long odd(long v) { return work(v, v % 5) + work(v, v % 3) - work(v + 1, v % 7); }
static long even(long v) { return work(v, v % 2) - work(v, v % 6) + work(v - 1, v % 4); }
int main(void) {
  long s = 1;
  for (long i = 0; i < 50000; ++i) s += i % 1000 ? odd(s & 255) + odd(i & 63) : even(s & 127);
  return printf("%ld\\n", s) < 0;
}
"""
PROJECT = ["-ffunction-sections", "-fdata-sections", "-g0"]


def build(tree: SourceTree, generate: str, use: str) -> tuple[SourceTree, Corpus]:
    """Run the program with counters and build it under the wrappers with what it counted."""
    clang = tree.wrappers.toolchain.clang
    tree.write("main.c", PROGRAM)
    subprocess.run(
        [clang, "-O2", generate, "main.c", "-o", "counting"], cwd=tree.source, check=True
    )
    subprocess.run(["./counting"], cwd=tree.source, check=True, capture_output=True)
    raw = sorted(tree.source.glob("*.profraw"))
    merger = tree.wrappers.toolchain.prefix / "bin" / "llvm-profdata"
    subprocess.run([merger, "merge", *raw, "-o", tree.source / "p.profdata"], check=True)
    at_speed = tree.at("-O2")
    assert at_speed.cc("-O2", f"{use}=p.profdata", "-c", "main.c").returncode == 0
    assert at_speed.cc("main.o", "-o", "main").returncode == 0
    return at_speed, at_speed.finalise()


@pytest.mark.parametrize(
    ("generate", "use", "beside"),
    [
        ("-fprofile-generate", "-fprofile-use", 1),
        ("-fprofile-instr-generate", "-fprofile-instr-use", 0),
    ],
)
def test_objects_are_those_of_the_build(
    tree: SourceTree, toolchain: Toolchain, tmp_path: Path, generate: str, use: str, beside: int
) -> None:
    tree, corpus = build(tree, generate, use)
    assert corpus.dropped_options == 0
    assert len(list(corpus.root.rglob("demo/*.profdata"))) == beside
    (module,) = corpus.modules
    theirs, without = tmp_path / "theirs.o", tmp_path / "without.o"
    command = [str(toolchain.clang), "-O2", *PROJECT, "-c", "main.c"]
    subprocess.run([*command, f"{use}=p.profdata", "-o", theirs], cwd=tree.source, check=True)
    subprocess.run([*command, "-o", without], cwd=tree.source, check=True)
    ours = tree.compile_module(corpus, module.name, tmp_path / "ours.o")
    assert ours.read_bytes() == theirs.read_bytes()
    assert ours.read_bytes() != without.read_bytes()


def test_the_profile_moves_with_the_corpus(tree: SourceTree, tmp_path: Path) -> None:
    tree, corpus = build(tree, "-fprofile-generate", "-fprofile-use")
    (module,) = corpus.modules
    before = tree.compile_module(corpus, module.name, tmp_path / "before.o").read_bytes()
    export(corpus, tmp_path / "exported")
    import_(tmp_path / "exported", tmp_path / "imported")
    shutil.move(corpus.root, tmp_path / "elsewhere")
    for place in ("elsewhere", "exported", "imported"):
        moved = store.load(tmp_path / place)
        after = tree.compile_module(moved, module.name, tmp_path / "after.o").read_bytes()
        assert after == before
    assert store.load(tmp_path / "elsewhere").digest == corpus.digest
    profile = store.load(tmp_path / "imported").profile(moved.modules[0])
    assert profile is not None
    profile.write_bytes(b"other counts")
    with pytest.raises(CorpusError, match="is not the file that the manifest names"):
        store.verify(moved)


def test_a_codegen_corpus_has_the_counts_and_no_profile(
    tree: SourceTree, toolchain: Toolchain, tmp_path: Path
) -> None:
    tree, corpus = build(tree, "-fprofile-generate", "-fprofile-use")
    (module,) = corpus.modules
    made = make_codegen_corpus(corpus, tmp_path / "codegen", toolchain)
    assert made.modules[0].profile is None
    assert module.profile is not None
    objects = [
        tree.compile_module(one, module.name, tmp_path / "o").read_bytes() for one in (corpus, made)
    ]
    assert objects[0] == objects[1]


def test_a_build_with_other_counts_takes_the_place(tree: SourceTree) -> None:
    tree, before = build(tree, "-fprofile-generate", "-fprofile-use")
    (tree.source / "main.o").unlink()
    for raw in tree.source.glob("*.profraw"):  # The same run twice: other counts, other code.
        shutil.copy(raw, raw.with_name(f"twice-{raw.name}"))
    tree, after = build(tree, "-fprofile-generate", "-fprofile-use")
    (old,), (new,) = before.modules, after.modules
    assert (old.digest, old.name) == (new.digest, new.name)
    assert old.profile != new.profile
    assert [path.stem for path in after.root.rglob("demo/*.profdata")] == [new.profile]


def test_a_sample_profile_is_named(tree: SourceTree) -> None:
    tree.write("main.c", PROGRAM)
    tree.write("samples.txt", "main:5000:0\n 2: 100\n")
    assert tree.cc("-O2", "-fprofile-sample-use=samples.txt", "-c", "main.c").returncode == 0
    (lost,) = tree.finalise().missing
    assert lost.reason.endswith(
        "(-fprofile-sample-use) are without one here, since a corpus keeps none: 1"
    )


@pytest.mark.parametrize(
    "path", ["p.profdata", "/etc/passwd", f"../{'0' * 64}.profdata", f"{'0' * 63}/.profdata"]
)
def test_no_other_file_can_be_named(path: str) -> None:
    option = f"-fprofile-instrument-use-path={path}"
    assert safe_cc1(["-cc1", "-O2", option]) == (("-cc1", "-O2", "-emit-obj"), (option,))
