"""The learner of portfolios with the real compiler, which tries what it proposes."""

import dataclasses
import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from nestor.api.learning import Trained, train_policy
from nestor.compiler.plugin import Plugin
from nestor.corpus.model import Corpus, Input, Program
from nestor.errors import NestorError
from nestor.learn.accounting import Tally
from nestor.learn.algorithms.portfolio import groups_of
from nestor.learn.programs import training_programs
from nestor.learn.reference import Reference, reference
from nestor.policy import bundle
from nestor.policy.names import NamedPolicy
from nestor.policy.portfolio import PortfolioPolicy
from nestor.rollout.local_pool import LocalPool
from tests.problems.allocations import compiled, log_of
from tests.problems.conftest import pool_for

SETTINGS = {"steps": 2, "population": 16, "members": 3, "cover": 1.0}


@pytest.fixture(params=["regalloc-eviction", "regalloc-priority"])
def trying_pool(
    request: pytest.FixtureRequest,
    corpus: Corpus,
    plugin: Plugin,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[LocalPool]:
    """A pool for the corpus as one program."""
    monkeypatch.setenv("NESTOR_CACHE", str(tmp_path / "cache"))
    inputs = tuple(Input("module", module.name) for module in corpus.modules)
    program = Program("x/all", "x", "c++", inputs)
    whole = dataclasses.replace(corpus, programs=(program,), level="-O2")
    with pool_for(request.param, whole, plugin) as opened:
        yield opened


def trained(pool: LocalPool, folder: Path) -> Trained:
    return train_policy(pool, folder, learner="portfolio", settings=SETTINGS, seed=1)


def stock_of(pool: LocalPool) -> Reference:
    """Return the reference that the learner used."""
    tally, features = Tally(), pool.problem.features.few
    found = reference(pool, training_programs(pool.corpus), features, tally)
    assert tally.rollouts == 0, "it is in the cache"
    return found


def test_trains_a_portfolio_that_is_never_worse(trying_pool: LocalPool, tmp_path: Path) -> None:
    done = trained(trying_pool, tmp_path / "run")
    assert done.tally.failures == 0
    saved = bundle.load(done.path)
    assert isinstance(saved, PortfolioPolicy)
    members = len(saved.members())
    assert members == max(2, done.result.last_metrics["members"])
    problem, stock = trying_pool.problem, stock_of(trying_pool)
    units = {s.unit.name: place for place, s in enumerate(stock.stocks)}
    assert set(units) == {"pressure.c.o", "probe.c.o", "probe.cpp.o"}
    lines = (done.path.parent / "curves.jsonl").read_text().splitlines()
    changes = [json.loads(line)["change_pct"] for line in lines]
    assert changes[1] < 0 and changes[1] <= changes[0]
    for name, price in done.tally.prices.items():
        assert price == pytest.approx(2.6 * stock.stocks[units[name]].seconds)

    found = {}
    for name, place in units.items():
        policy = problem.policy(str(done.path))
        rollout = compiled(trying_pool, policy, name, log=False, names=False)
        assert rollout.failure is None
        parts, before = rollout.outcome.parts(), stock.stocks[place].parts
        tried = problem.tried(rollout.outcome)
        assert set(tried) <= set(parts)
        for part, ratios in tried.items():
            assert ratios.shape == (members,)
            found[place, part] = min(1.0, ratios.min())
        for part, cost in parts.items():
            assert cost <= before[part] * found.get((place, part), 1.0) * (1 + 1e-9)
    # What the learner says it comes to is what the compiler then finds.
    groups = groups_of(stock, {"x/all": trying_pool.corpus.programs[0].modules}, 1.0)
    change = sum(group.weight * (found.get((group.unit, group.part), 1.0) - 1) for group in groups)
    assert 100 * change == pytest.approx(changes[1], rel=1e-6)


def test_a_portfolio_is_improved(trying_pool: LocalPool, tmp_path: Path) -> None:
    first = trained(trying_pool, tmp_path / "run")
    settings = {**SETTINGS, "steps": 1}
    init = str(first.path)
    again = train_policy(
        trying_pool, tmp_path / "on", learner="portfolio", settings=settings, init=init, seed=2
    )
    before, after = (d.result.last_metrics["change_pct"] for d in (first, again))
    assert after <= before < 0
    with pytest.raises(NestorError, match="another kind of policy"):
        train_policy(trying_pool, tmp_path / "cma", learner="cma", init=init)


def test_the_same_run_gives_the_same_bytes(trying_pool: LocalPool, tmp_path: Path) -> None:
    files = [trained(trying_pool, tmp_path / name).path.read_bytes() for name in ("one", "two")]
    assert files[0] == files[1]


def test_functions_beside_those_that_count_are_left_to_stock(
    trying_pool: LocalPool, tmp_path: Path
) -> None:
    policy = NamedPolicy.of(trained(trying_pool, tmp_path / "run").policy)
    problem = trying_pool.problem
    log = log_of(compiled(trying_pool, "default"))
    assert sorted(log.names.values()) == ["calls", "churn"]
    every = compiled(trying_pool, policy, overrides=problem.only(log, ["calls", "churn"]))
    assert every.object == compiled(trying_pool, policy).object
    stock = compiled(trying_pool, None)
    tried = {}
    for own in ("calls", "churn"):
        one = compiled(trying_pool, policy, overrides=problem.only(log, [own]))
        tried[own] = problem.tried(one.outcome)
        assert set(tried[own]) <= {own}
        for name, cost in one.outcome.parts().items():
            usual = (stock if name != own else every).outcome.parts()[name]
            assert cost == usual
    assert tried["churn"].keys() == {"churn"}
    assert np.array_equal(tried["churn"]["churn"], problem.tried(every.outcome)["churn"])
    none = compiled(trying_pool, policy, overrides=problem.only(log, []))
    assert none.object == stock.object
    assert not problem.tried(none.outcome)
