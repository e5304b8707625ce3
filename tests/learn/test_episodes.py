"""Episodes by real compiles: references, sampling, credit, and learners set up from a corpus."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from nestor.build.linking import link, shares
from nestor.compiler.plugin import Plugin
from nestor.corpus.model import Corpus, CorpusError
from nestor.learn.accounting import Tally
from nestor.learn.budget import Budget, Budgeted
from nestor.learn.credit import CreditSettings, advantages, at_the_end, rewards
from nestor.learn.episodes import Episodes, draw
from nestor.learn.learners import LEARNERS
from nestor.learn.programs import training_programs
from nestor.learn.reference import reference
from nestor.learn.setup import Setup
from nestor.learn.start import StartSettings, start, with_two_outputs
from nestor.learn.training import Run, train
from nestor.policy import bundle
from nestor.problem.registry import find_problem
from nestor.problem.rollout import Request
from nestor.problems.inlining_size.builtins import constant
from nestor.rollout.local_pool import LocalPool

PROBLEM = find_problem("inlining-size")
FEW, UNIT = PROBLEM.features.few, PROBLEM.features.unit
NEVER = constant(inline=False)


@pytest.fixture
def episodes(
    small_corpus: Corpus, plugin: Plugin, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Episodes]:
    monkeypatch.setenv("NESTOR_CACHE", str(tmp_path / "cache"))
    tally = Tally()
    with LocalPool(PROBLEM, small_corpus, plugin) as pool:
        made = reference(pool, training_programs(small_corpus), FEW, tally)
        yield Episodes(pool, made, tally)


def test_reference_is_recorded_once(episodes: Episodes) -> None:
    first, tally = episodes.reference, Tally()
    programs = training_programs(episodes.pool.corpus)
    again = reference(episodes.pool, programs, FEW, tally)
    assert tally.rollouts == 0
    assert again.prices() == first.prices()
    assert len(again.stocks) == 2
    for one, other in zip(first.stocks, again.stocks, strict=True):
        assert (one.trajectory.decisions == other.trajectory.decisions).all()
        assert replace(one, trajectory=other.trajectory) == replace(other)
        assert one.trajectory.names == other.trajectory.names
    with pytest.raises(CorpusError, match="decision to learn from"):
        reference(episodes.pool, (), FEW, Tally())


def test_one_reference_serves_all_learners(episodes: Episodes) -> None:
    first, tally = episodes.reference, Tally()
    programs = training_programs(episodes.pool.corpus)
    other = reference(episodes.pool, programs, UNIT, tally)
    assert tally.rollouts == 0
    assert (first.features, other.features) == (FEW, UNIT)
    assert other.prices() == first.prices()
    assert other.sample(100, 0).x.shape[1] == len(UNIT)
    more = reference(episodes.pool, programs, ("node_count",), tally)
    assert tally.rollouts > 0
    assert more.sample(100, 0).x.shape[1] == 1


def test_stock_totals_are_the_shares_of_the_stock_link(episodes: Episodes) -> None:
    pool = episodes.pool
    modules = [stock.unit for stock in episodes.reference.stocks]
    done = pool.run([Request(m, keep=True) for m in modules])
    sizes = {r.request.unit.name: r.outcome for r in done}
    objects = {r.request.unit.name: pool.objects.path(r.object) for r in done if r.object}
    for program in pool.corpus.programs:
        linked = link(pool.plugin.toolchain, pool.corpus, program, objects, want_kept=True)
        weights = shares(program, linked, sizes)
        for stock in episodes.reference.stocks:
            if stock.unit.name in program.modules:
                assert stock.total == weights.score(stock.unit.name, sizes[stock.unit.name])


def test_sampling_depends_on_seed_and_step_alone(episodes: Episodes) -> None:
    policy = start(episodes.reference, StartSettings(hidden=(), explore=0.5), 0)
    one = episodes.sampled(policy, [0, 1], seed=1, step=2)
    same = episodes.sampled(policy, [1, 0], seed=1, step=2)
    assert set(one.total) == set(same.total)
    assert (one.action[one.episode == 0] == same.action[same.episode == 1]).all()
    assert (one.change[one.episode == 0] == same.change[same.episode == 1]).all()
    others = [episodes.sampled(policy, [0, 1], seed=1, step=step) for step in range(3, 8)]
    assert any(len(o.x) != len(one.x) or (o.action != one.action).any() for o in others)
    chances = policy.probabilities(one.x)
    expected = np.log(np.where(one.action > 0, chances, 1 - chances))
    assert one.log_probability == pytest.approx(expected)


def test_policy_that_answers_as_stock_changes_nothing(episodes: Episodes) -> None:
    policy = start(episodes.reference, StartSettings(), 0)
    before = episodes.tally.rollouts
    assert (episodes.totals([policy], [0, 1]) == episodes.reference.totals).all()
    assert episodes.tally.rollouts == before, "nothing is compiled for it"
    greedy = episodes.greedy(policy, [0, 1])
    assert episodes.tally.rollouts == before + 2
    assert (greedy.total == greedy.stock).all()
    assert not greedy.action.any()
    assert not greedy.change.any()
    assert greedy.relative_change == 0


def test_credit_adds_up_to_what_changed(episodes: Episodes) -> None:
    """Never inlining: all that changed is shared by the sites that stock inlines."""
    never = NEVER
    learner = start(episodes.reference, StartSettings(hidden=()), 0)
    batch = episodes.greedy(never, [0, 1], like=learner)
    assert (batch.total != batch.stock).all()
    assert (batch.action > 0).any(), "stock inlines, this policy does not"
    assert (batch.share[batch.action == 0] == 0).all()
    for number in range(2):
        own = batch.episode == number
        shared = batch.share[own].sum()
        assert shared == pytest.approx(batch.total[number] - batch.stock[number])
        assert (batch.change[own] != 0).any()
    totals = episodes.totals([never], [0, 1])
    assert (totals[0] == batch.total).all()
    assert batch.last.sum() == 2


def test_failed_compiles_are_left_out(episodes: Episodes) -> None:
    corpus = episodes.pool.corpus
    path = corpus.bitcode(episodes.reference.stocks[0].unit)
    path.write_bytes(path.read_bytes()[:100])
    policy = start(episodes.reference, StartSettings(), 0)
    batch = episodes.sampled(policy, [0, 1], 0, 0)
    assert list(batch.unit) == [1]
    assert episodes.tally.failures == 1
    totals = episodes.totals([NEVER], [0, 1])
    assert np.isnan(totals[0, 0])
    assert np.isfinite(totals[0, 1])


def test_clone_decides_as_the_default_does(episodes: Episodes) -> None:
    policy = start(episodes.reference, StartSettings(answers="decision", clone_steps=400), 0)
    examples = episodes.reference.sample(10_000, 0)
    x = examples.x
    assert (policy.actions(x) == examples.action).all()
    two = with_two_outputs(policy)
    assert two.logits(x) == pytest.approx(policy.logits(x), abs=1e-5)


def test_credit_schemes(episodes: Episodes) -> None:
    policy = start(episodes.reference, StartSettings(hidden=(), explore=0.5), 0)
    batch = episodes.sampled(policy, [0, 1], seed=0, step=0)
    totals = episodes.reference.totals
    by_stock, same = rewards(CreditSettings(scheme="stock"), batch, totals, PROBLEM)
    assert same is totals
    assert by_stock[0] == pytest.approx(100 * (1 - batch.total[0] / batch.stock[0]))
    by_module, moved = rewards(CreditSettings(scheme="module", decay=0.75), batch, totals, PROBLEM)
    assert (by_module == by_stock).all(), "the averages begin at stock"
    assert moved == pytest.approx(0.75 * totals + 0.25 * batch.total)
    again, _ = rewards(CreditSettings(scheme="module"), batch, batch.total, PROBLEM)
    assert (again == 0).all()
    by_function, _ = rewards(CreditSettings(scheme="function", most=16.0), batch, totals, PROBLEM)
    assert set(np.unique(by_function)) <= {-1.0, *(-batch.change / 16).clip(-1, 1)}
    assert (np.flatnonzero(at_the_end(by_stock, batch, "stock")) < len(batch.x)).all()
    assert advantages(by_stock, "stock").mean() == pytest.approx(0, abs=1e-9)
    assert advantages(by_function, "function") is by_function


def test_every_module_is_drawn_once_before_one_is_drawn_again() -> None:
    drawn = np.concatenate([draw(0, step, 3, 9) for step in range(3)])
    assert sorted(drawn) == list(range(9))
    assert sorted(draw(0, 0, 50, 9)) == list(range(9))
    assert list(draw(0, 5, 3, 9)) != list(draw(1, 5, 3, 9))


NEW = [
    name
    for name, entry in LEARNERS.items()
    if entry.budgeted and name != "es" and PROBLEM.rule.name in entry.rules
]


@pytest.mark.parametrize("name", NEW)
def test_learners_run_from_a_corpus_and_again(
    name: str,
    small_corpus: Corpus,
    plugin: Plugin,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("NESTOR_CACHE", str(tmp_path / "cache"))
    entry, ends = LEARNERS[name], []
    for number in range(2):
        tally = Tally()
        with LocalPool(PROBLEM, small_corpus, plugin) as pool:
            budget = Budget(compiles=6)
            folder = tmp_path / str(number)
            setup = Setup(pool, folder, seed=3, tally=tally, budget=budget)
            ready = entry.set_up(entry.settings(steps=2), setup)
            result = train(Budgeted(ready.learner, budget, tally), Run(folder, {}))
        assert tally.failures == 0
        assert result.last_metrics["spent/compiles"] <= tally.rollouts
        assert result.policy.features == ready.features
        ends.append(bundle.to_bytes(result.policy))
    assert ends[0] == ends[1]


def test_evolution_strategies_obey_a_budget(episodes: Episodes, tmp_path: Path) -> None:
    clone = start(episodes.reference, StartSettings(answers="decision", hidden=()), 0)
    budget, tally = Budget(cpu_minutes=0.06), Tally()
    setup = Setup(episodes.pool, tmp_path / "run", 0, tally, init=clone, budget=budget)
    entry = LEARNERS["es"]
    ready = entry.set_up(entry.settings(steps=200, population=4, trust=1.0, widest=3.0), setup)
    assert tally.prices, "links and compiles have prices"
    learner = Budgeted(ready.learner, budget, tally)
    result = train(learner, Run(tmp_path / "run", {}))
    spent = result.last_metrics["spent/cpu_minutes"]
    updates = result.last_metrics["spent/updates"]
    assert 0.03 < spent < 0.09 or updates == 200
