"""``nestor build``: a program of a corpus under a policy, whatever the policy decides."""

import json
import subprocess
from pathlib import Path

import pytest

from nestor.compiler.plugin import Plugin
from nestor.corpus.model import Corpus
from tests.command import nestor
from tests.conftest import SOURCE, make_corpus


@pytest.fixture(scope="module")
def speed_corpus(tmp_path_factory: pytest.TempPathFactory, plugin: Plugin) -> Corpus:
    """A program at -O2, with no workload."""
    root = tmp_path_factory.mktemp("speed") / "corpus"
    return make_corpus(root, plugin.toolchain, {"one": SOURCE}, level="-O2")


@pytest.mark.parametrize(
    ("problem", "policy", "more"),
    [
        ("inlining-size", "default", ()),
        ("inlining-speed", "shipped-speed", ()),
        ("inlining-speed", "shipped-speed", ("--lto", "thin", "--mode", "icf")),
        ("regalloc-eviction", "shipped-eviction", ()),
        ("regalloc-priority", "shipped-priority", ("--mode", "no-gc")),
    ],
)
def test_a_program_is_built_under_a_policy_of_any_problem(
    speed_corpus: Corpus, tmp_path: Path, problem: str, policy: str, more: tuple[str, ...]
) -> None:
    """Nothing is run for it, so the program needs no workload."""
    out = tmp_path / "one"
    words = ["build", "one", "--corpus", str(speed_corpus.root), "--out", str(out)]
    done = nestor(*words, "--problem", problem, "--policy", policy, *more, "--json")
    assert done.returncode == 0, done.stderr
    built = json.loads(done.stdout)
    assert built["linked"] > built["text"] > 0
    assert built["stock_modules"] == []
    assert subprocess.run([out], check=False).returncode in (0, 1)


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--problem", "regalloc-eviction", "--lto", "full"], "has no build 'full-lto'"),
        (["--problem", "inlining-speed", "--never-worse"], "it has no profile run"),
        (["--policy", "shipped"], "where policies for inlining-size decide nothing"),
    ],
)
def test_what_cannot_be_built_writes_nothing(
    speed_corpus: Corpus, tmp_path: Path, words: list[str], says: str
) -> None:
    out = tmp_path / "one"
    done = nestor("build", "one", "--corpus", str(speed_corpus.root), "--out", str(out), *words)
    assert done.returncode == 1
    assert says in done.stderr
    assert not list(tmp_path.iterdir())
