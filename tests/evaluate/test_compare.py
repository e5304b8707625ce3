"""Evaluation: the default is stock, other policies are not, and the statistics are right."""

import json

import numpy as np
import pytest

from nestor.change import change_pct
from nestor.compiler.plugin import Plugin
from nestor.corpus.model import Corpus, CorpusError
from nestor.evaluate.compare import EvaluateSettings, evaluate, select_programs
from nestor.evaluate.statistics import (
    geometric_mean_change_pct,
    paired_bootstrap_pct,
)
from nestor.rollout.local_pool import LocalPool, PoolSettings
from tests.inlining import LINK, PROBLEM, policy_named


def test_default_changes_nothing(small_corpus: Corpus, plugin: Plugin) -> None:
    with LocalPool(PROBLEM, small_corpus, plugin) as pool:
        (result,) = evaluate(pool, LINK, small_corpus.programs, [policy_named("default")])
    assert not result.failures
    assert [p.change_pct for p in result.programs] == [0, 0]
    assert all(p.stock == p.policy for p in result.programs)
    assert result.decisions > 0
    assert result.compile_cpu_ratio is not None
    assert 0.3 < result.compile_cpu_ratio < 3


def test_another_policy_changes_something(small_corpus: Corpus, plugin: Plugin) -> None:
    with LocalPool(PROBLEM, small_corpus, plugin) as pool:
        policies = [policy_named("always"), policy_named("never")]
        always, never = evaluate(pool, LINK, small_corpus.programs, policies)
    assert not always.failures + never.failures
    sizes = {p.policy.columns["linked"] for r in (always, never) for p in r.programs if p.policy}
    assert len(sizes) > 1


def test_a_build_less_without_the_log(small_corpus: Corpus, plugin: Plugin) -> None:
    with LocalPool(PROBLEM, small_corpus, plugin) as pool:
        with_log, without = (
            evaluate(pool, LINK, small_corpus.programs, [policy_named("always")], settings)[0]
            for settings in (EvaluateSettings(), EvaluateSettings(log=False))
        )
    assert without.programs == with_log.programs
    assert with_log.decisions > 0 == without.decisions


def test_json_has_the_documented_shape(small_corpus: Corpus, plugin: Plugin) -> None:
    with LocalPool(PROBLEM, small_corpus, plugin) as pool:
        (result,) = evaluate(pool, LINK, small_corpus.programs, [policy_named("threshold:15")])
    data = json.loads(json.dumps(result.to_json()))
    assert set(data) >= {
        "programs", "total", "compile_cpu_ratio", "decisions", "failures", "hashes",
    }  # fmt: skip
    program = data["programs"][0]
    assert set(program) >= {"name", "project", "stock", "policy", "linked_change_pct"}
    assert set(program["stock"]) >= {"object", "linked"}
    low, high = data["total"]["ci95"]
    assert low <= data["total"]["linked_change_pct"] <= high
    assert set(data["hashes"]) == {"corpus", "compiler", "plugin", "policy", "overrides"}


@pytest.mark.parametrize("jobs", [1, 3])
def test_same_bytes_with_any_number_of_jobs(
    small_corpus: Corpus, plugin: Plugin, jobs: int
) -> None:
    with LocalPool(PROBLEM, small_corpus, plugin, PoolSettings(jobs=jobs)) as pool:
        (result,) = evaluate(pool, LINK, small_corpus.programs, [policy_named("mlgo2020")])
    sizes = [(p.name, p.stock, p.policy) for p in result.programs]
    with LocalPool(PROBLEM, small_corpus, plugin, PoolSettings(jobs=2)) as pool:
        (again,) = evaluate(pool, LINK, small_corpus.programs, [policy_named("mlgo2020")])
    assert sizes == [(p.name, p.stock, p.policy) for p in again.programs]


def test_split_without_programs_is_one_sentence(small_corpus: Corpus) -> None:
    assert select_programs(small_corpus, None) == small_corpus.programs
    with pytest.raises(CorpusError, match="no programs to link in the split test"):
        select_programs(small_corpus, "test")


def test_geometric_mean() -> None:
    assert geometric_mean_change_pct([100, 100], [50, 200]) == pytest.approx(0)
    assert change_pct(200, 190) == pytest.approx(-5)


def test_bootstrap_draws_projects_not_programs() -> None:
    """Two programs of one project move together: the interval must not shrink."""
    before = [100.0] * 4
    after = [90.0, 110.0, 95.0, 105.0]
    alone = paired_bootstrap_pct(["a", "b", "c", "d"], before, after)
    twice = paired_bootstrap_pct(["a", "b", "c", "d"] * 2, before * 2, after * 2)
    assert twice == pytest.approx(alone)
    assert alone[0] < 0 < alone[1]
    assert paired_bootstrap_pct(["a"], [100.0], [90.0]) == (-10.0, -10.0)


def test_bootstrap_covers_the_truth() -> None:
    """About 95 % of the intervals of repeated samples contain the true change."""
    generator = np.random.default_rng(0)
    hits = 0
    for trial in range(200):
        changes = generator.normal(-0.02, 0.01, size=40)
        low, high = paired_bootstrap_pct(
            [str(i) for i in range(40)],
            [1.0] * 40,
            list(1 + changes),
            seed=trial,
            resamples=1000,
        )
        hits += low <= -2 <= high
    assert 0.88 < hits / 200 <= 1


@pytest.mark.corpus
def test_held_out_programs_of_the_tiny_corpus(tiny_corpus: Corpus, plugin: Plugin) -> None:
    programs = select_programs(tiny_corpus, None)
    assert {p.project for p in programs} == {"lz4", "pugixml"}
    with LocalPool(PROBLEM, tiny_corpus, plugin) as pool:
        (result,) = evaluate(pool, LINK, programs, [policy_named("mlgo2020")])
    assert not result.failures
    assert all(p.change_pct not in (None, 0) for p in result.programs)
