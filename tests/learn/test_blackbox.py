"""One update of each learner that sees only scores, against a step computed by hand."""

import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import cma
import numpy as np
import pytest

from nestor.errors import NestorError
from nestor.learn.algorithms.ars import RandomSearch, RandomSearchSettings
from nestor.learn.algorithms.cma_es import CmaEs, CmaSettings, Search
from nestor.learn.algorithms.es import (
    EvolutionSettings,
    EvolutionStrategies,
    Samples,
    guarded_score,
)
from nestor.learn.blackbox.candidates import by_units, mean_change_pct, relative_changes
from nestor.policy import bundle
from nestor.policy.network import MlpPolicy
from tests.learn.worlds import World, acts_below, beginner, threshold_world


def random_search(world: World, **options: Any) -> RandomSearch:
    return RandomSearch(RandomSearchSettings(modules=2, **options), 5, beginner(world), world)


def perturbations(learner: RandomSearch, step: int) -> Any:
    settings = learner.settings
    shape = (settings.directions, learner.start.parameters)
    draws = np.random.default_rng([5, 10, step]).standard_normal(shape)
    return settings.width * draws


def test_random_search_steps_against_the_slopes_of_the_best() -> None:
    learner = random_search(threshold_world(2, 5), directions=4, best=2, recency=3.0)
    state = learner.init()
    plus, minus = np.array([0.15, -0.1, 0.0, np.nan]), np.array([0.12, 0.2, -0.3, -0.9])
    after, metrics = learner.update(state, np.concatenate([plus, minus]))
    shifts = perturbations(learner, 0)
    best = [2, 1]  # by the lower score of either sign; the one that failed counts not
    spread = np.std([0.0, -0.1, -0.3, 0.2])
    slope = sum((plus[i] - minus[i]) * shifts[i] / 0.5 for i in best)
    expected = state.center - 0.3 / (2 * spread) * slope
    assert after.center == pytest.approx(expected)
    assert after.mean == pytest.approx(expected), "the first step's centre weighs all"
    assert after.step == 1
    finite = [0.15, -0.1, 0.0, 0.12, 0.2, -0.3, -0.9]
    assert metrics["relative_change_pct"] == pytest.approx(100 * np.mean(finite))
    assert metrics["best_change_pct"] == pytest.approx(-30)
    assert metrics["failed"] == 1
    again, _metrics = learner.update(after, np.concatenate([plus, minus]))
    weight = 4 / 5  # (1 + recency) / (step + recency)
    assert again.mean == pytest.approx(after.mean + weight * (again.center - after.mean))
    policy = learner.policy(replace(again, mean=np.arange(3.0)))
    assert policy.flatten_parameters().tolist() == [0, 1, 2]
    away = replace(state, center=state.center + 4)
    back, _metrics = learner.update(away, np.full(8, 0.25))
    assert back.center == pytest.approx(state.center + 2), "no differences: half-way to the start"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        nothing, metrics = learner.update(state, np.full(8, np.nan))
    assert (nothing.center == state.center).all()
    assert metrics == {"relative_change_pct": 0, "best_change_pct": 0, "failed": 4}


def test_equal_scores_stand_in_the_order_of_the_candidates() -> None:
    """Also where there are so many that a sort that is not stable would mix them."""
    count = 40
    learner = random_search(threshold_world(2, 5), directions=count, best=4)
    state = learner.init()
    scores = np.where(np.arange(count) % 5 == 2, -0.2, 0.1)
    after, _metrics = learner.update(state, np.concatenate([scores, np.full(count, 0.3)]))
    slope = -0.5 * perturbations(learner, 0)[[2, 7, 12, 17]].sum(axis=0) / 0.5
    expected = state.center - 0.3 / (4 * 0.25) * slope
    assert after.center == pytest.approx(expected)
    evolving = evolution(EvolutionSettings(population=count))
    begun = evolving.init()
    candidates = evolving._candidates(begun)
    best = candidates[[*range(2, count, 5), *(n for n in range(count) if n % 5 != 2)][:20]]
    weights = np.log(20.5) - np.log(np.arange(1, 21))
    mean = weights @ best / weights.sum()
    assert evolving._mean(begun, candidates, scores) == pytest.approx(mean)


def test_random_search_compares_mirrored_candidates() -> None:
    world = threshold_world(2, 5)
    learner = random_search(world, directions=3, best=1)
    state = replace(learner.init(), step=4, center=np.array([1.0, 2.0, 3.0]))
    found = learner.batch(state)
    shifts = perturbations(learner, 4)
    candidates = [*(state.center + shifts), *(state.center - shifts)]
    policies = [learner.start.with_parameters(c.astype(np.float32)) for c in candidates]
    units = world.drawn(5, 4, 2)
    totals = world.totals(policies, units)
    assert found == pytest.approx(totals.sum(axis=1) / 8000 - 1)
    assert len(set(found)) > 1


def test_settings_that_make_no_sense_are_refused() -> None:
    with pytest.raises(NestorError, match="at least one and at most all"):
        RandomSearchSettings(directions=4, best=5)
    with pytest.raises(NestorError, match="at least one and at most all"):
        RandomSearchSettings(best=0)
    assert RandomSearchSettings(directions=4, best=4, recency=0).best == 4
    with pytest.raises(NestorError, match="recency"):
        RandomSearchSettings(recency=-0.1)
    with pytest.raises(NestorError, match="population of at least 4"):
        CmaSettings(population=3)
    with pytest.raises(NestorError, match="patience of at least 1"):
        CmaSettings(patience=0)
    assert CmaSettings(population=4, patience=1).patience == 1


def test_scores_are_relative_to_stock_and_failures_are_no_number() -> None:
    world = threshold_world(3, 10)
    start = beginner(world)
    never = start.flatten_parameters().astype(np.float64)
    always = never + np.array([0, 0, 9])
    units = np.array([2, 0])
    both = [start.with_parameters(each.astype(np.float32)) for each in (never, always)]
    found = relative_changes(world, both, units)
    assert found[0] == 0
    assert world.tally.reused == 2, "what follows without compiling"
    assert world.tally.rollouts == 2
    act = start.with_parameters(always.astype(np.float32))
    assert found[1] == pytest.approx(world.greedy(act, units).total.sum() / 8000 - 1)
    assert found[1] != 0
    assert mean_change_pct(np.array([0.1, np.nan, 0.3])) == pytest.approx(20)
    assert mean_change_pct(np.array([np.nan])) == 0


# --- CMA-ES ---------------------------------------------------------------------------------------


def cma_es(world: World, **options: Any) -> CmaEs:
    settings = CmaSettings(modules=2, **options)
    return CmaEs(settings, 5, beginner(world), by_units(world, 5, settings.modules))


def pycma(learner: CmaEs, generator: np.random.Generator) -> Any:
    start = learner.start.flatten_parameters().astype(np.float64)
    options = {
        "popsize": learner.settings.population, "seed": np.nan, "verbose": -9, "verb_log": 0,
        "randn": lambda *shape: generator.standard_normal(shape),
    }  # fmt: skip
    return cma.CMAEvolutionStrategy(start, learner.settings.width, options)


SCORES = np.linspace(-0.2, 0.1, 12)


def test_cma_es_is_pycma() -> None:
    learner = cma_es(threshold_world(2, 5))
    strategy = pycma(learner, np.random.default_rng([5, 11]))
    state = learner.init()
    for step in range(4):
        asked = strategy.ask()
        assert np.array(learner.search(state.scores).candidates()) == pytest.approx(np.array(asked))
        scores = np.roll(SCORES, step)
        if step == 2:
            scores = np.where(scores == SCORES[3], np.nan, scores)
        state, metrics = learner.update(state, scores)
        strategy.tell(asked, list(np.where(np.isnan(scores), 1.0, scores)))
        assert metrics["width"] == pytest.approx(strategy.sigma)
        assert metrics["failed"] == (step == 2)
        assert metrics["best_change_pct"] == pytest.approx(-20)
        assert metrics["relative_change_pct"] == pytest.approx(100 * np.nanmean(scores))
        mean = learner.policy(state).flatten_parameters()
        assert mean == pytest.approx(strategy.mean, abs=1e-6)
        assert state.step == step + 1 == len(state.scores)
    assert metrics["width"] != learner.settings.width


def test_cma_es_begins_again_after_generations_without_improvement() -> None:
    learner = cma_es(threshold_world(2, 5), patience=3)
    flat, clear = np.linspace(-2e-4, 0.1, 12), np.linspace(-2.1e-4, 0.1, 12)
    generator = np.random.default_rng([5, 11])
    strategy, state = pycma(learner, generator), learner.init()
    for number, scores in enumerate([flat, flat, clear, flat, flat, flat]):
        strategy.tell(strategy.ask(), list(scores))
        state, metrics = learner.update(state, scores)
        assert (metrics["width"] == learner.settings.width) is (number == 5)
    assert bundle.to_bytes(learner.policy(state)) == bundle.to_bytes(learner.start)
    new = pycma(learner, generator).ask()
    found = learner.search(state.scores).candidates()
    assert np.array(found) == pytest.approx(np.array(new)), "with the generator's next draws"
    for number in range(3):
        state, metrics = learner.update(state, flat)
        assert (metrics["width"] == learner.settings.width) is (number == 2)


def test_cma_es_computes_each_generation_once_and_again_when_resumed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    advance, count = Search.advance, []

    def counted(search: Search, scores: Any) -> None:
        count.append(1)
        advance(search, scores)

    monkeypatch.setattr(Search, "advance", counted)
    world = threshold_world(2, 30)
    learner = cma_es(world)
    states = [learner.init()]
    for _ in range(6):
        state, _metrics = learner.update(states[-1], learner.batch(states[-1]))
        learner.policy(state)
        states.append(state)
    assert len(count) == 6
    resumed = cma_es(world)
    for number in (6, 3, 4):
        policy = resumed.policy(states[number])
        assert bundle.to_bytes(policy) == bundle.to_bytes(learner.policy(states[number]))
        learner.policy(states[-1])
    assert resumed.batch(states[4]) == pytest.approx(learner.batch(states[4]))
    count.clear()
    resumed.policy(states[4])
    assert not count, "it stands there"


# --- evolution strategies -------------------------------------------------------------------------


def shrink(policy: MlpPolicy) -> float:
    """A made-up relative change: less is better where the parameters are near 1."""
    return 0.01 * float(((policy.flatten_parameters() - 1) ** 2).sum()) - 0.02


def evolution(settings: EvolutionSettings, **options: Any) -> EvolutionStrategies:
    def compare(policies: Sequence[MlpPolicy]) -> Any:
        return np.array([[shrink(policy)] for policy in policies])

    start = beginner(threshold_world(2, 5), (2,))
    chosen = {"compare": compare, "deviation": lambda _policy: 0.0, "projects": ("a",), **options}
    return EvolutionStrategies(settings, 3, start, **chosen)


def test_evolution_draws_mirrored_pairs_of_widths_of_their_own() -> None:
    learner = evolution(EvolutionSettings(population=400, narrowest=0.1, widest=2.0))
    state = learner.init()
    shifts = learner._candidates(state) - state.center
    assert shifts[:200] == pytest.approx(-shifts[200:])
    widths = np.sqrt((shifts[:200] ** 2).mean(axis=1))
    assert 0.05 < widths.min() < 0.15
    assert 1.2 < widths.max() < 3.0
    middle = np.sqrt(0.1 * 2.0)
    assert np.median(widths) == pytest.approx(middle, rel=0.3), "log-uniform"
    other = learner._candidates(replace(state, step=1))
    assert not np.allclose(other, shifts + state.center)


def test_evolution_moves_to_the_best_of_centre_mean_and_candidates() -> None:
    learner = evolution(EvolutionSettings(population=4))
    state = learner.init()
    assert state.score == pytest.approx(guarded_score(state.changes, ["a"], 4.0))
    state = replace(state, score=0.0)
    candidates = learner._candidates(state)
    scores = np.array([[0.3], [-0.5], [-0.4], [0.2]])
    weights = np.log(2.5) - np.log([1, 2])
    mean = (weights[0] * candidates[1] + weights[1] * candidates[2]) / weights.sum()
    after, metrics = learner.update(state, Samples(scores, np.array([-0.6])))
    assert after.center == pytest.approx(mean)
    assert (after.score, after.changes.tolist()) == (-0.6, [-0.6])
    assert after.step == 1
    assert metrics["guarded_score_pct"] == pytest.approx(-60)
    assert metrics["mean_change_pct"] == pytest.approx(-60)
    assert metrics["better_candidates"] == 0.5
    assert metrics["failed"] == 0
    after, _metrics = learner.update(state, Samples(scores, np.array([-0.4])))
    assert after.center == pytest.approx(candidates[1])
    assert after.changes.tolist() == [-0.5]
    kept, _metrics = learner.update(replace(state, score=-0.7), Samples(scores, np.array([-0.6])))
    assert (kept.center == state.center).all()
    assert kept.score == -0.7
    tied, _metrics = learner.update(replace(state, score=-0.6), Samples(scores, np.array([-0.6])))
    assert (tied.center == state.center).all(), "what is only as good is not accepted"
    failed = np.array([[np.nan], [-0.5], [np.nan], [np.nan]])
    after, metrics = learner.update(state, Samples(failed, np.array([np.nan])))
    assert after.center == pytest.approx(candidates[1])
    assert metrics["failed"] == 3


def test_evolution_builds_the_candidates_then_their_mean() -> None:
    learner = evolution(EvolutionSettings(population=4))
    state = learner.init()
    batch = learner.batch(state)
    candidates = learner._candidates(state)
    policies = [learner.start.with_parameters(c.astype(np.float32)) for c in candidates]
    assert batch.candidates[:, 0] == pytest.approx([shrink(policy) for policy in policies])
    order = np.argsort(batch.candidates[:, 0])[:2]
    weights = np.log(2.5) - np.log([1, 2])
    mean = weights @ candidates[order] / weights.sum()
    policy = learner.start.with_parameters(mean.astype(np.float32))
    assert batch.mean[0] == pytest.approx(shrink(policy), abs=1e-6)
    assert (learner.policy(state).flatten_parameters() == learner.start.flatten_parameters()).all()


def test_evolution_shortens_a_shift_until_it_is_trusted() -> None:
    start = beginner(threshold_world(2, 5), (2,)).flatten_parameters()
    limit = EvolutionSettings(population=4, trust=0.25, narrowest=1.0, widest=1.0)

    def deviation(policy: MlpPolicy) -> float:
        return float(np.abs(policy.flatten_parameters() - start).max())

    learner = evolution(limit, deviation=deviation)
    state = learner.init()
    shifts = np.abs(learner._candidates(state) - state.center).max(axis=1)
    assert (shifts <= 0.25 + 1e-6).all()
    assert (shifts > 0.7 * 0.25 - 1e-6).all(), "no shorter than it must be"
    at_the_limit = evolution(limit, deviation=lambda _policy: 0.25)
    whole = evolution(limit)
    assert (at_the_limit._candidates(state) == whole._candidates(state)).all()
    upwards = evolution(
        limit, deviation=lambda policy: float((policy.flatten_parameters() - start).max())
    )
    shifts = upwards._candidates(state) - state.center
    assert (shifts.max(axis=1) <= 0.25 + 1e-6).all(), "the shift with its own sign is judged"
    never = evolution(limit, deviation=lambda policy: 1.0 if deviation(policy) else 0.5)
    assert (never._candidates(state) == state.center).all(), "given up"


def test_guarded_score_counts_growth_and_leaves_the_luckiest_project_out() -> None:
    assert guarded_score(np.array([-0.01, 0.01]), ["a", "a"], 4.0) == pytest.approx(0.02)
    assert guarded_score(np.array([-0.01, -0.02]), ["a", "a"], 4.0) == pytest.approx(-0.015)
    assert guarded_score(np.array([-0.5, np.nan]), ["a", "b"], 0.0) == np.inf
    assert guarded_score(np.array([-0.5, 0.0, 0.0]), ["a", "b", "c"], 0.0) == 0
    assert guarded_score(np.array([-0.5, -0.01, 0.0]), ["a", "b", "c"], 0.0) == -0.005
    assert guarded_score(np.array([-0.5, -0.5, 0.0]), ["a", "a", "b"], 0.0) == 0


def test_a_policy_to_imitate_acts_below_its_benefit() -> None:
    x = np.array([[29.0], [31.0], [-5.0]])
    assert acts_below(30).actions(x).tolist() == [1, 0, 1]
