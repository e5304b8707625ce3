"""Training within a budget and ``nestor compare``, as their users meet them."""

import json
from pathlib import Path

import pytest

from nestor.cli.policies.train import Train
from nestor.corpus.model import Corpus
from nestor.errors import NestorError
from nestor.learn.budget import Budget
from tests.command import nestor


def test_train_in_a_budget_and_compare(small_corpus: Corpus, tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    done = nestor(
        "train", "inlining-size", "--corpus", str(small_corpus.root), "--out", str(runs / "a"),
        "--learner", "reinforce", "--budget.compiles", "4", "--json",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert result["metrics"]["spent/compiles"] == 4
    assert result["preparation"]["rollouts"] <= 2
    identity = json.loads((runs / "a" / "run.json").read_text())
    assert identity["budget"] == {"cpu_minutes": None, "compiles": 4}
    table = tmp_path / "curves.csv"
    words = ["compare", str(runs / "a"), "--corpus", str(small_corpus.root), "--csv", str(table)]
    done = nestor(*words, "--json", "--points", "2")
    assert done.returncode == 0, done.stderr
    (row,) = json.loads(done.stdout)
    assert row["name"] == "reinforce"
    assert row["programs"] == 2
    assert row["compiles"] == 4
    assert len(table.read_text().splitlines()) == 1 + len(row["curve"])
    assert (runs / "a" / "evaluation.json").exists()
    done = nestor("compare", str(runs / "a"), str(tmp_path))
    assert done.returncode == 1
    assert "holds no run" in done.stderr


@pytest.mark.parametrize(
    ("learner", "budget", "said"),
    [
        ("nobody", Budget(), "there are: "),
        ("distil", Budget(compiles=3), "limits of its own"),
    ],
)
def test_senseless_words_are_explained(learner: str, budget: Budget, said: str) -> None:
    command = Train("inlining-size", Path("corpus"), Path("out"), learner=learner, budget=budget)
    with pytest.raises(NestorError, match=said):
        command.run()
