"""``nestor evaluate`` as its users meet it: its tables and its JSON."""

import json

from nestor.corpus.model import Corpus
from tests.command import nestor


def test_evaluate_json_keeps_stdout_clean(small_corpus: Corpus) -> None:
    done = nestor("evaluate", "--policy", "default", "--corpus", str(small_corpus.root), "--json")
    assert done.returncode == 0, done.stderr
    (evaluation,) = json.loads(done.stdout)["evaluations"]
    assert [p["linked_change_pct"] for p in evaluation["programs"]] == [0, 0]


def test_evaluate_several_policies_and_modes(small_corpus: Corpus) -> None:
    words = ["evaluate", "--policy", "never", "always", "--mode", "gc", "no-gc"]
    small = [*words, "--corpus", str(small_corpus.root), "--least-bytes", "1"]
    done = nestor(*small)
    assert done.returncode == 0, done.stderr
    header = next(line for line in done.stdout.splitlines() if "policy" in line)
    assert "gc" in header and "no-gc" in header
    for policy in ("never", "always"):
        assert sum(line.startswith(f"{policy}, ") for line in done.stdout.splitlines()) == 2
    data = json.loads(nestor(*small, "--json").stdout)
    assert [(e["policy"], e["link_mode"]) for e in data["evaluations"]] == [
        ("never", "gc"), ("never", "no-gc"), ("always", "gc"), ("always", "no-gc"),
    ]  # fmt: skip
    assert {g["group"] for g in data["groups"]} == {"all", "C"}
    assert all(g["programs"] == 2 for g in data["groups"])


def test_evaluate_shows_every_program_where_none_counts(small_corpus: Corpus) -> None:
    words = ["evaluate", "--policy", "never", "--mode", "gc", "no-gc", "--least-bytes", "1e9"]
    done = nestor(*words, "--corpus", str(small_corpus.root))
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("never against stock") == 2
    assert "No program has at least 1,000,000,000 bytes" in done.stdout


def test_evaluate_table(small_corpus: Corpus) -> None:
    done = nestor("evaluate", "--policy", "never", "--corpus", str(small_corpus.root))
    assert done.returncode == 0, done.stderr
    assert "95 % interval" in done.stdout
    assert "0 failures" in done.stdout
