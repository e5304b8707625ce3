"""The guard's list as its users meet it: made once, then given to builds."""

import json
import re
from pathlib import Path

import pytest

from nestor.compiler.toolchain import Toolchain
from nestor.corpus.model import Corpus
from nestor.problems.inlining_size.search.overrides import load
from tests.command import nestor
from tests.conftest import make_corpus

# Larger under the policy "always", with or without the functions that nobody calls then.
GROWING = """
extern int getchar(void);
static int large(int v) { return v * (CALLS); }
int first(int v) { return large(v) + large(v + 1) + large(v + 2) + large(v + 3); }
int main(int c, char **v) { return first(c) + large(c) > 99; }
""".replace("CALLS", " + ".join(["getchar()"] * 30))


@pytest.fixture
def corpus(tmp_path: Path, toolchain: Toolchain) -> Corpus:
    return make_corpus(tmp_path / "corpus", toolchain, {"one": GROWING, "two": GROWING + "int x;"})


def size(corpus: Corpus, out: Path, *words: str) -> int:
    """Build program one with ``words`` and return its loadable bytes."""
    command = ["build", "one", "--corpus", str(corpus.root), "--out", str(out), "--json"]
    done = nestor(*command, *words)
    assert done.returncode == 0, done.stderr
    assert out.exists()
    return int(json.loads(done.stdout)["linked"])


def test_list_then_build(corpus: Corpus, tmp_path: Path) -> None:
    out, file = tmp_path / "program", tmp_path / "guard.txt"
    where = ["--corpus", str(corpus.root)]
    done = nestor("guard", *where, "--policy", "always", "--out", str(file), "--json")
    assert done.returncode == 0, done.stderr
    data = json.loads(done.stdout)
    assert data["lines"] == len(load(file)) == 2
    rows = {p["program"]: p for p in data["programs"]}
    assert set(rows) == {"one/one", "two/two"}
    assert rows["one/one"]["back"] == ["one/one.o"]
    assert set(rows["one/one"]["sizes"]) == {"gc", "no-gc", "icf"}
    for mode, sizes in rows["one/one"]["sizes"].items():
        assert sizes["guarded"] == sizes["stock"] < sizes["policy"]
        bare, policy = ["--mode", mode], ["--mode", mode, "--policy", "always"]
        assert size(corpus, out, *bare) == sizes["stock"]
        assert size(corpus, out, *policy) == sizes["policy"]
        assert size(corpus, out, *policy, "--overrides", str(file)) == sizes["guarded"]
        assert size(corpus, out, *policy, "--never-worse") == sizes["guarded"]


def test_table_of_one_program(corpus: Corpus, tmp_path: Path) -> None:
    file = tmp_path / "guard.txt"
    words = ["--corpus", str(corpus.root), "--policy", "always", "--program", "two"]
    done = nestor("guard", *words, "--mode", "gc", "--out", str(file))
    assert done.returncode == 0, done.stderr
    assert "1 of 1" in done.stdout
    assert "two/two.o" in file.read_text()
    assert "one" not in file.read_text()


def test_clang_and_flags_take_overrides(tmp_path: Path, corpus: Corpus) -> None:
    """A module that is listed is stock's; options name a copy, so they hold in any folder."""
    (tmp_path / "one.c").write_text(GROWING)
    file = tmp_path / "guard.txt"
    words = ["--corpus", str(corpus.root), "--policy", "always", "--program", "one"]
    assert nestor("guard", *words, "--out", str(file)).returncode == 0
    compile_ = ["--", "-Oz", "-c", "one.c", "-o", "one.o"]

    def compiled(*own: str) -> bytes:
        done = nestor("clang", *own, *compile_, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        return (tmp_path / "one.o").read_bytes()

    stock = compiled("default")
    assert compiled("always") != stock
    assert compiled("always", "--overrides", "guard.txt") == stock
    flags = nestor("flags", "always", "--overrides", "guard.txt", cwd=tmp_path).stdout
    (copy,) = re.findall(r"-nestor-overrides=(\S+)", flags)
    assert Path(copy).is_absolute() and Path(copy).read_bytes() == file.read_bytes()


@pytest.mark.parametrize("command", ["flags", "build", "evaluate"])
def test_overrides_that_are_none_are_one_sentence(
    command: str, corpus: Corpus, tmp_path: Path
) -> None:
    (tmp_path / "bad").write_text("module 12 stock\n")
    bad = ["--overrides", str(tmp_path / "bad")]
    where = ["--corpus", str(corpus.root)]
    words = {
        "flags": ["default", *bad],
        "build": ["one", *where, "--out", str(tmp_path / "out"), *bad],
        "evaluate": ["--policy", "default", *where, *bad],
    }[command]
    done = nestor(command, *words)
    assert done.returncode == 1
    assert "nestor-overrides 1" in done.stderr
    assert "Traceback" not in done.stderr
