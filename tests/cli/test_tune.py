"""``nestor tune`` as its users meet it."""

import json
from pathlib import Path

from nestor.corpus.model import Corpus
from nestor.policy.overrides import load
from tests.cli.test_cli import nestor


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


def test_tune_says_what_is_wrong(small_corpus: Corpus, tmp_path: Path) -> None:
    words = ["--corpus", str(small_corpus.root), "--out", str(tmp_path / "tuned")]
    done = nestor("tune", "three", *words, "--policy", "default")
    assert done.returncode == 1
    assert "there are: one/one, two/two" in done.stderr.replace("\n", " ")
    assert not (tmp_path / "tuned").exists()
