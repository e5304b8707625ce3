"""``nestor tune`` as its users meet it."""

import json
import shlex
from pathlib import Path

import pytest

from nestor.compiler.plugin import Plugin
from nestor.corpus.model import Corpus
from nestor.problems.inlining_size.search.overrides import load
from nestor.problems.inlining_size.summary.program_summary import load as load_summary
from tests.command import nestor
from tests.conftest import SOURCE, make_corpus


def test_tune_writes_overrides_and_goes_on(small_corpus: Corpus, tmp_path: Path) -> None:
    out = tmp_path / "tuned"
    words = ["tune", "one", "--corpus", str(small_corpus.root), "--out", str(out)]
    words += ["--policy", "default", "--mode", "gc", "no-gc", "--json"]
    done = nestor(*words, "--compiles", "9")
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert result["objective"] == ["gc", "no-gc"]
    assert set(result["sizes"]) == {"gc", "no-gc", "icf"}
    for sizes in result["sizes"].values():
        assert sizes["tuned"]["linked"] <= sizes["stock"]["linked"]
    assert len(load(out / "overrides.txt")) == result["overrides_count"]
    assert json.loads((out / "result.json").read_text()) == result
    more = json.loads(nestor(*words, "--compiles", "13").stdout)
    assert more["curve"][: len(result["curve"])] == result["curve"], "it went on, not anew"
    assert len(more["curve"]) > len(result["curve"])


def test_tune_goes_on_with_another_cache(
    small_corpus: Corpus, plugin: Plugin, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a resumed search writes does not depend on the cache of either process."""
    words = ["tune", "one", "--corpus", str(small_corpus.root), "--policy", "always", "--json"]
    folders = tmp_path / "whole", tmp_path / "resumed"
    plugins = plugin.path.parent.parent
    for out, steps in zip(folders, (["13"], ["7", "13"]), strict=True):
        for compiles in steps:
            cache = tmp_path / f"cache-{compiles}"
            cache.mkdir(exist_ok=True)
            if not (cache / "plugins").exists():
                (cache / "plugins").symlink_to(plugins)
            monkeypatch.setenv("NESTOR_CACHE", str(cache))
            done = nestor(*words, "--out", str(out), "--compiles", compiles)
            assert done.returncode == 0, done.stderr
    texts = [(out / "overrides.txt").read_text() for out in folders]
    assert texts[0] == texts[1]
    results = [json.loads((out / "result.json").read_text()) for out in folders]
    for name in ("policy", "policy_digest", "sizes", "curve"):
        assert results[0][name] == results[1][name]
    assert results[0]["policy"] in ("always", "default")
    assert f"policy {results[0]['policy']} {results[0]['policy_digest']}\n" in texts[0]


def test_tune_keeps_the_summary_that_its_overrides_need(
    small_corpus: Corpus, tmp_path: Path
) -> None:
    out = tmp_path / "tuned"
    words = ["tune", "one", "--corpus", str(small_corpus.root), "--out", str(out)]
    words += ["--policy", "distilled"]
    done = nestor(*words, "--compiles", "3", "--json")
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    if result["policy"] == "distilled":
        assert load_summary(out / "summary.txt").link == "gc"
        assert result["summary"] == str(out / "summary.txt")
    else:
        assert (result["policy"], result["summary"]) == ("default", None)
        assert not (out / "summary.txt").exists()
    nestor_, *command = shlex.split(result["command"])
    assert (nestor_, command.pop()) == ("nestor", "…")
    source = small_corpus.root.parent / "sources" / "one" / "one.c"
    done = nestor(*command, "-c", str(source), cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert (tmp_path / "one.o").exists()
    assert "use them:  nestor clang" in nestor(*words, "--compiles", "3").stdout
    without = nestor(*words, "--compiles", "3", "--no-summary")
    assert without.returncode == 1
    assert "differs in: the summary of the program. Take another" in without.stderr


def test_tune_prints_the_level_of_the_corpus(plugin: Plugin, tmp_path: Path) -> None:
    """Where policies decide nothing, the search starts from stock, and overrides act."""
    corpus = make_corpus(tmp_path / "corpus", plugin.toolchain, {"one": SOURCE}, level="-Os")
    words = ["tune", "one", "--corpus", str(corpus.root), "--out", str(tmp_path / "tuned")]
    done = nestor(*words, "--compiles", "6", "--json")
    assert done.returncode == 0, done.stderr
    assert "policies for inlining-size decide nothing at -Os" in done.stderr.replace("\n", " ")
    result = json.loads(done.stdout)
    assert result["policy"] == "default"
    assert " -- -Os -ffunction-sections " in result["command"]
    named = nestor(*words, "--policy", "shipped")
    assert named.returncode == 1
    assert "captured at -Os, where policies for inlining-size decide nothing" in named.stderr


def test_tune_ends_where_stock_does_nothing_that_is_counted(plugin: Plugin, tmp_path: Path) -> None:
    """No change in per cent exists of columns that are 0, such as the reads of this program."""
    source = "int main(void) { return 0; }\n"
    corpus = make_corpus(tmp_path / "corpus", plugin.toolchain, {"one": source}, level="-O2")
    words = ["tune", "one", "--corpus", str(corpus.root), "--out", str(tmp_path / "tuned")]
    done = nestor(*words, "--problem", "regalloc-eviction", "--trials", "1")
    assert done.returncode == 0, done.stderr
    assert "0 overrides on top of the policy default" in done.stdout


def test_tune_says_what_is_wrong(small_corpus: Corpus, tmp_path: Path) -> None:
    words = ["--corpus", str(small_corpus.root), "--out", str(tmp_path / "tuned")]
    done = nestor("tune", "three", *words, "--policy", "default")
    assert done.returncode == 1
    assert "there are: one/one, two/two" in done.stderr.replace("\n", " ")
    assert not (tmp_path / "tuned").exists()


@pytest.mark.parametrize(
    "words",
    [("--compiles", "-1"), ("--compiles", "nan"), ("--compiles", "inf"), ("--trials", "0")],
)
def test_tune_refuses_what_no_search_can_spend(words: tuple[str, str], tmp_path: Path) -> None:
    done = nestor("tune", "one", "--corpus", "x", "--out", str(tmp_path / "out"), *words)
    assert done.returncode == 1
    assert done.stderr.startswith(f"nestor: {words[0]} must be ")
    assert done.stderr.count("\n") == 1
    assert not (tmp_path / "out").exists()
