"""Shared code across splits, and the timing of a corpus."""

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from nestor.compiler.plugin import Plugin
from nestor.compiler.toolchain import Toolchain
from nestor.corpus.capture.drafts import Selection
from nestor.corpus.capture.merge import finalise
from nestor.corpus.model import Corpus, Project, Split
from nestor.evaluate.copies.overlap import LARGEST_SHARE_PCT, Compiled, functions, overlap
from nestor.evaluate.copies.shared_code import hashes_of, read_hashes, shared_code, write_hashes
from nestor.evaluate.sweep import sweep
from nestor.problem.registry import find_problem
from nestor.rollout.local_pool import LocalPool, PoolSettings

if TYPE_CHECKING:
    from tests.corpus.conftest import SourceTree

COMMON = """
#include <stdio.h>
int {name}(int x, const char *s) {{
  for (int i = 0; i < x; i++) {{ printf("%d %s\\n", i * x ^ 77, s); x -= puts(s) == {number}; }}
  return x * 3 + puts("end") * {number};
}}
"""


@pytest.fixture
def corpus(tree: "SourceTree", tmp_path: Path, toolchain: Toolchain) -> Corpus:
    """Three projects: ``copy`` has a function of ``trained`` under another name."""
    splits: dict[str, Split] = {"trained": "train", "copy": "test", "fresh": "validation"}
    texts = {"trained": ("f", 7), "copy": ("renamed", 7), "fresh": ("f", 1234)}
    root = tmp_path / "all"
    for name, (function, number) in texts.items():
        other = tree.another(tmp_path / name, name)
        other.write("a.c", COMMON.format(name=function, number=number))
        assert other.cc("-c", "a.c").returncode == 0
        project = Project(name, split=splits[name])
        merged = finalise(root, other.journal, [Selection(project)], toolchain=toolchain.version)
    return merged


def test_a_copy_under_another_name_is_found(
    tree: "SourceTree", corpus: Corpus, tmp_path: Path
) -> None:
    objects = {
        m.name: tree.compile_module(corpus, m.name, tmp_path / f"{m.project}.o")
        for m in corpus.modules
    }
    result = overlap([Compiled(corpus, objects)])
    shares = {p.project: p.shared_pct for p in result.projects}
    assert shares == {"copy": 100.0, "fresh": 0.0}
    assert not result.ok
    (pair,) = result.pairs
    assert (pair.project, pair.other, pair.functions) == ("copy", "trained", 1)
    assert pair.examples == ("renamed",)
    assert result.to_json()["projects"][0]["shared_pct"] > LARGEST_SHARE_PCT
    without = overlap([Compiled(corpus, {n: o for n, o in objects.items() if "copy" not in n})])
    assert without.ok
    assert without.unread == ("copy/a.o",)


def test_corpora_are_compared_as_one(tree: "SourceTree", corpus: Corpus, tmp_path: Path) -> None:
    """A held-out project of another corpus that is training's in the first does not hide."""
    twin = tree.another(tmp_path / "twin", "trained")
    twin.write("a.c", COMMON.format(name="other_name", number=7))
    assert twin.cc("-c", "a.c").returncode == 0
    held_out = [Selection(Project("trained", split="test"))]
    late = finalise(tmp_path / "late", twin.journal, held_out)
    compiled = [
        Compiled(
            here,
            {
                m.name: tree.compile_module(here, m.name, tmp_path / f"{here.root.name}-{n}.o")
                for n, m in enumerate(here.modules)
            },
        )
        for here in (corpus, late)
    ]
    shares = {p.project: p.shared_pct for p in overlap(compiled).projects}
    assert shares == {"copy": 100.0, "late/trained": 100.0, "fresh": 0.0}


def test_functions_of_the_standard_library_do_not_count(tree: "SourceTree", tmp_path: Path) -> None:
    tree.write(
        "v.cpp",
        "#include <vector>\nint mine(std::vector<int> &v, int n) {\n"
        "  for (int i = 0; i < n; i++) v.push_back(i ^ n); return v.at(3) / v.at(n); }\n",
    )
    assert tree.cxx("-c", "-std=c++17", "v.cpp").returncode == 0
    corpus = tree.finalise()
    found = list(functions(tree.compile_module(corpus, "demo/v.o", tmp_path / "v.o")))
    assert [name for _, _, name in found] == ["_Z4mineRSt6vectorIiSaIiEEi"]


def test_sweep(corpus: Corpus, plugin: Plugin) -> None:
    with LocalPool(find_problem("inlining-size"), corpus, plugin, PoolSettings(jobs=1)) as pool:
        result = sweep(pool, corpus.modules)
        assert (result.modules, result.failures) == (3, ())
        assert result.cpu_seconds > 0
        assert result.peak_mib > 10
        assert {name for name, _ in result.slowest} == {m.name for m in corpus.modules}
        corpus.bitcode(corpus.modules[0]).write_bytes(b"BC broken")
        assert [name for name, _ in sweep(pool, corpus.modules).failures] == [
            corpus.modules[0].name
        ]


def test_code_that_training_has_seen(tree: "SourceTree", corpus: Corpus, tmp_path: Path) -> None:
    objects = {
        m.name: tree.compile_module(corpus, m.name, tmp_path / f"{m.project}.o")
        for m in corpus.modules
    }
    compiled = [Compiled(corpus, objects)]
    seen = hashes_of(compiled, ["train"])
    write_hashes(tmp_path / "seen.txt", seen)
    assert read_hashes(tmp_path / "seen.txt") == seen
    copied, fresh = objects["copy/a.o"], objects["fresh/a.o"]
    assert shared_code([copied], seen).pct == 100.0
    assert shared_code([fresh], seen).pct == 0.0
    both = shared_code([copied, fresh], seen)
    assert (both.functions, both.shared_functions) == (2, 1)
    # With the usual splits validation counts as seen, too.
    assert shared_code([fresh], hashes_of(compiled)).pct == 100.0
