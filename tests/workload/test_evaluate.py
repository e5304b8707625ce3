"""Policies are judged by what programs execute, from the command line down to callgrind."""

import json
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from nestor.build.build import Binary, Job
from nestor.cli.workload.list import List
from nestor.cli.workload.measure import Measure
from nestor.cli.workload.timing import Time
from nestor.compiler.plugin import Plugin
from nestor.corpus import store
from nestor.corpus.model import Corpus, CorpusError
from nestor.evaluate import workloads as judging
from nestor.evaluate.workloads import measure_workloads, require_workloads
from nestor.problem.overrides import OverridesError
from nestor.problem.registry import find_problem
from nestor.rollout.local_pool import LocalPool, PoolSettings
from nestor.workload.counts import Counts, J, Measurement
from nestor.workload.kept import Repeated

POLICY = "lowest-density"
"""It evicts what weighs least, which is another choice than the stock heuristic's."""


@pytest.fixture
def pool(workloads: Corpus, plugin: Plugin) -> Iterator[LocalPool]:
    problem = find_problem("regalloc-eviction")
    with LocalPool(problem, workloads, plugin, PoolSettings(jobs=1)) as opened:
        yield opened


def test_the_default_changes_nothing_and_a_bad_policy_does(
    pool: LocalPool, workloads: Corpus, tmp_path: Path
) -> None:
    problem = pool.problem
    policies = [problem.policy("default"), problem.policy(POLICY)]
    same, first = measure_workloads(pool, workloads.programs, policies, tmp_path)
    assert same.failures == first.failures == ()
    assert set(same.changes().values()) == {0.0}
    assert same.total()["ci95"] == [0.0, 0.0]
    assert min(map(abs, first.changes().values())) > 0.1, first.changes()
    worst, best = first.programs
    assert (worst.change_pct() or 0) >= (best.change_pct() or 0)
    total = first.total()
    assert total["programs"] == 2
    assert total["ci95"][0] <= total["mean_pct"] <= total["ci95"][1]
    assert total["worst_pct"] == worst.change_pct()
    assert replace(first, programs=(worst,)).total()["ci95"] is None
    stock = worst.stock
    assert stock is not None
    assert stock[J] == stock["instructions"] + stock["reads"] + stock["writes"]
    assert {"cost", "static_instructions", "text"} <= stock.keys()
    assert worst.noise_pct == 0.0
    data = first.to_json()
    assert data["programs"][0]["change_pct"][J] == worst.change_pct()
    # One measurement for each program of stock and of the policy; the default's is stock's.
    assert len(list(tmp_path.iterdir())) == 4


def test_the_commands(
    workloads: Corpus, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert List(workloads.root, json=True).run() == 0
    listed = json.loads(capsys.readouterr().out)
    assert [row["measure"] for row in listed] == [["40"], ["70"]]
    assert List(workloads.root).run() == 0
    assert "first/first" in capsys.readouterr().out
    settings: dict[str, Any] = {"corpus": workloads.root, "pool": PoolSettings(jobs=1)}
    out = tmp_path / "out"
    measure = Measure((POLICY,), program=("first",), out=out, json=True, **settings)
    assert measure.run() == 0
    printed = json.loads(capsys.readouterr().out)
    assert printed == json.loads((out / "result.json").read_text())
    assert printed["workloads"][0]["policy"] == POLICY
    assert Measure((POLICY,), out=out, **settings).run() == 0
    table = capsys.readouterr().out
    assert "2 programs: J mean" in table
    assert table.index("first/first") > 0
    timed = Time((POLICY,), program=("first",), rounds=3, json=True, **settings)
    assert timed.run() == 0
    times = json.loads(capsys.readouterr().out)
    assert times["programs"][0]["seconds"].keys() == {"stock", "stock again", POLICY}
    assert Time((POLICY,), program=("first",), rounds=3, **settings).run() == 0
    assert "stock again: mean" in capsys.readouterr().out
    overrides = tmp_path / "overrides.txt"
    overrides.write_text("nestor-overrides 1\nno line of this format\n")
    with pytest.raises(OverridesError, match=r"overrides\.txt"):
        Time((POLICY,), program=("first",), overrides=overrides, rounds=3, **settings).run()


def test_a_corpus_without_workloads_is_refused(workloads: Corpus) -> None:
    bare = replace(workloads, programs=tuple(replace(p, workload=None) for p in workloads.programs))
    with pytest.raises(CorpusError, match="corpus fetch speed"):
        require_workloads(bare, bare.programs)


def test_a_build_that_fails_is_named(workloads: Corpus, plugin: Plugin, tmp_path: Path) -> None:
    root = tmp_path / "corpus"
    shutil.copytree(workloads.root, root)
    broken = store.load(root)
    broken.bitcode(broken.modules[0]).write_bytes(b"BC no bitcode")
    problem = find_problem("regalloc-eviction")
    with LocalPool(problem, broken, plugin, PoolSettings(jobs=1)) as pool:
        (result,) = measure_workloads(
            pool, broken.programs, [problem.policy("default")], tmp_path / "kept"
        )
    assert {(f.what, f.side) for f in result.failures} == {
        ("first/first", "stock"),
        ("first/first", "policy"),
    }
    failed, good = result.programs
    assert failed.change_pct() is None
    assert good.change_pct() == 0.0
    assert result.total()["programs"] == 1


def test_another_output_is_a_failure_unless_stock_does_not_repeat_its_own(
    workloads: Corpus,
) -> None:
    program = workloads.programs[0]

    def side(left: str, second: str | None = None) -> judging._Side:
        measurement = Measurement(Counts(10, 2, 1), {}, {}, {}, left)
        binary = Binary(Job(program, "gc"), "0" * 64, None)
        return judging._Side(binary, Repeated(measurement, 13, second), None)

    row = judging._row(workloads, side("a", "a"), side("b"))
    assert row.policy is None
    (failure,) = judging._failures(side("a", "a"), side("b"))
    assert failure.reason == "workload: another output than stock's"
    assert judging._row(workloads, side("a", "c"), side("b")).change_pct() == 0.0
    assert not list(judging._failures(side("a", "c"), side("b")))
