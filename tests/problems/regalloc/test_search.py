"""'nestor tune' for register allocation: the plugin searches, function by function."""

import json
from pathlib import Path

import pytest

from nestor.build.build import builds_of
from nestor.corpus.model import Corpus, Input, Program
from nestor.errors import NestorError
from nestor.policy.names import DEFAULT
from nestor.rollout.local_pool import LocalPool
from nestor.tune.compiler_search import compiler_search_of
from nestor.tune.inside import InsideSettings, Spent, tune_inside
from nestor.tune.result import Tuned
from tests.problems.allocations import compiled

SETTINGS = InsideSettings(trials=40)


def program(corpus: Corpus) -> Program:
    """Return a program of all modules of the corpus."""
    inputs = tuple(Input("module", module.name) for module in corpus.modules)
    return Program("x/all", "x", "c++", inputs)


def tuned(
    pool: LocalPool, folder: Path, settings: InsideSettings = SETTINGS, seed: int = 0
) -> tuple[Tuned, Spent]:
    build = builds_of(pool.problem)["objects"]
    return tune_inside(pool, build, program(pool.corpus), DEFAULT, settings, seed, folder)


@pytest.mark.parametrize("name", ["pool", "priority_pool"])
def test_search_finds_overrides_that_hold(
    name: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    pool: LocalPool = request.getfixturevalue(name)
    result, spent = tuned(pool, tmp_path)
    assert result.best.total < result.stock.total
    assert spent.better > 0 and spent.trials >= 80 and not spent.failures
    kinds = {key.kind for key in result.overrides}
    assert kinds == {"evict" if name == "pool" else "priority"}
    text = result.text(pool.problem)
    assert pool.problem.overrides().parse(text) == result.overrides
    for unit in pool.corpus.modules:
        before = compiled(pool, None, unit.name).outcome.parts()
        after = compiled(pool, "default", unit.name, overrides=text).outcome.parts()
        assert all(after[function] <= cost for function, cost in before.items())


def test_search_goes_on_where_it_was(pool: LocalPool, tmp_path: Path) -> None:
    first, spent = tuned(pool, tmp_path)
    kept = json.loads((tmp_path / "search.json").read_text())
    again, unspent = tuned(pool, tmp_path)
    assert again.overrides == first.overrides
    assert (unspent.trials, unspent.cpu_seconds) == (spent.trials, spent.cpu_seconds)
    kept["functions"] = kept["functions"][1:]  # as if it had been stopped
    (tmp_path / "search.json").write_text(json.dumps(kept))
    resumed, _ = tuned(pool, tmp_path)
    assert resumed.overrides == first.overrides
    further, more = tuned(pool, tmp_path, InsideSettings(trials=80))
    assert more.trials > spent.trials
    assert further.best.total <= first.best.total


def test_another_search_is_not_overwritten(pool: LocalPool, tmp_path: Path) -> None:
    tuned(pool, tmp_path, InsideSettings(trials=1))
    with pytest.raises(NestorError, match="another search; it differs in"):
        tuned(pool, tmp_path, seed=1)
    (tmp_path / "search.json").write_text("{}")
    with pytest.raises(NestorError, match="is no kept search"):
        tuned(pool, tmp_path)


def test_hottest_functions_come_first(pool: LocalPool) -> None:
    searcher = compiler_search_of(pool.problem)
    assert searcher is not None
    rollouts = {m.name: compiled(pool, None, m.name) for m in pool.corpus.modules}
    targets = searcher.targets(rollouts)
    costs = {f.id: f.cost.cost for rollout in rollouts.values() for f in rollout.outcome.functions}
    ranked = [costs[target.key.number] for target in targets]
    assert ranked == sorted(ranked, reverse=True)
    assert {target.unit for target in targets} >= {"pressure.c.o", "probe.cpp.o"}
    assert sum(ranked) >= 0.99 * sum(costs.values())
