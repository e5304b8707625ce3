"""The level of capture: from the command line to the modules, and one level a corpus."""

import json
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from nestor.corpus import exchange, store
from nestor.corpus.level import LEVELS, Level, level_of, parse_level
from nestor.corpus.model import CorpusError, require_level
from tests.command import nestor

if TYPE_CHECKING:
    from tests.corpus.conftest import SourceTree

SOURCE = "int g(int); int h(int x) { for (int i = 0; i < x; i++) g(i); return x; }\n"


def attributes(tree: "SourceTree", bitcode: Path) -> set[str]:
    """Return the words of all attribute groups of a module."""
    tool = tree.wrappers.toolchain.prefix / "bin" / "llvm-dis"
    text = subprocess.run([tool, bitcode, "-o", "-"], capture_output=True, text=True, check=True)
    groups = [line for line in text.stdout.splitlines() if line.startswith("attributes #")]
    return {word for group in groups for word in group.split()}


@pytest.mark.parametrize("level", LEVELS)
def test_the_level_is_in_the_modules_and_in_the_description(
    tree: "SourceTree", tmp_path: Path, level: Level
) -> None:
    at_level = tree.at(level)
    at_level.write("a.c", SOURCE)
    assert at_level.cc("-O3", "-c", "a.c").returncode == 0
    corpus = at_level.finalise()
    (module,) = corpus.modules
    assert corpus.level == level
    assert level_of(module.options) == level
    assert store.load(corpus.root) == corpus
    assert json.loads((corpus.root / "manifest.json").read_text())["level"] == level
    words = attributes(tree, corpus.bitcode(module))
    assert ("minsize" in words) == (level == "-Oz")
    assert ("optsize" in words) == (level in ("-Oz", "-Os"))
    object_file = at_level.compile_module(corpus, module.name, tmp_path / "ours.o")
    clang = at_level.wrappers.toolchain.clang
    flags = [level, "-g0", "-ffunction-sections", "-fdata-sections"]
    subprocess.run(
        [clang, *flags, "-c", "a.c", "-o", tmp_path / "stock.o"], cwd=tree.source, check=True
    )
    assert object_file.read_bytes() == (tmp_path / "stock.o").read_bytes()


def test_a_corpus_without_a_level_is_one_of_the_default(tree: "SourceTree") -> None:
    """As all corpora are that were made before there was a choice."""
    tree.write("a.c", SOURCE)
    tree.cc("-c", "a.c")
    corpus = tree.finalise()
    path = corpus.root / "manifest.json"
    manifest = json.loads(path.read_text())
    del manifest["level"]
    path.write_text(json.dumps(manifest))
    old = store.load(corpus.root)
    assert old == corpus
    assert (old.level, old.digest) == ("-Oz", manifest["digest"])
    require_level(old, "-Oz")
    with pytest.raises(CorpusError, match=r"at -Oz and -O2 is needed: .*--level -O2"):
        require_level(old, "-O2")


def test_the_level_of_a_corpus_from_llvms_tools_is_its_modules(
    tree: "SourceTree", tmp_path: Path
) -> None:
    at_level = tree.at("-O2")
    at_level.write("a.c", SOURCE)
    at_level.cc("-c", "a.c")
    exchange.export(at_level.finalise(), tmp_path / "plain")
    assert store.load(tmp_path / "plain").level == "-O2"
    assert exchange.import_(tmp_path / "plain", tmp_path / "back").level == "-O2"
    assert store.load(tmp_path / "back").level == "-O2"


def test_the_same_object_is_recorded_again_at_another_level(tree: "SourceTree") -> None:
    tree.write("a.c", SOURCE)
    assert tree.cc("-c", "a.c").returncode == 0
    assert tree.at("-O2").cc("-c", "a.c").returncode == 0
    assert tree.finalise().level == "-O2"


def test_a_corpus_has_one_level(tree: "SourceTree", tmp_path: Path) -> None:
    tree.write("a.c", SOURCE)
    tree.write("b.c", SOURCE)
    tree.cc("-c", "a.c")
    before = tree.finalise()
    tree.at("-O2").cc("-c", "b.c")
    with pytest.raises(CorpusError, match="-O2 and -Oz, and a corpus has one"):
        tree.finalise()
    assert store.load(before.root) == before


@pytest.mark.parametrize("text", ["", "-O0", "-O4", "O2", "fast", None, 2])
def test_what_is_no_level(text: object) -> None:
    with pytest.raises(ValueError, match="no level of optimisation"):
        parse_level(text)


def test_a_damaged_level_is_refused(tree: "SourceTree") -> None:
    tree.write("a.c", SOURCE)
    tree.cc("-c", "a.c")
    path = tree.finalise().root / "manifest.json"
    path.write_text(path.read_text().replace('"level": "-Oz"', '"level": "-O9"'))
    with pytest.raises(CorpusError, match="-O9"):
        store.load(path.parent)


def test_a_wrapper_with_a_wrong_level_builds_and_says_so(tree: "SourceTree") -> None:
    tree.write("a.c", SOURCE)
    done = tree.run([str(tree.wrappers.cc), "-c", "a.c"], more={"NESTOR_LEVEL": "-O9"})
    assert done.returncode == 0
    assert (tree.source / "a.o").exists()
    assert "-O9" in done.stderr


def test_the_command_line(tmp_path: Path) -> None:
    (tmp_path / "a.c").write_text(SOURCE)
    (tmp_path / "Makefile").write_text("a.o: a.c\n\t$(CC) -c a.c\n")
    words = ["corpus", "capture", "--out", "mine", "--level", "-O2", "--json"]
    done = nestor(*words, "--", "make", "-B", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["level"] == "-O2"
    merged = nestor("corpus", "capture", "--out", "mine", "--json", cwd=tmp_path)
    assert json.loads(merged.stdout)["level"] == "-O2"
    other = nestor("corpus", "capture", "--out", "mine", "--", "make", "-B", cwd=tmp_path)
    assert other.returncode == 1
    assert "--level -Oz" in other.stderr
    wrong = nestor("corpus", "capture", "--level", "-O9", "--", "make", cwd=tmp_path)
    assert wrong.returncode == 2
    assert "--level" in wrong.stderr


def test_the_digest_does_not_count_the_level_twice(tree: "SourceTree") -> None:
    tree.write("a.c", SOURCE)
    tree.cc("-c", "a.c")
    corpus = tree.finalise()
    assert replace(corpus, level="-O2").digest == corpus.digest
