"""One update by imitation of the best, against the same computed plainly."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from nestor.learn.algorithms.best_of import BestOf, BestOfSettings
from nestor.learn.batch import Batch
from tests.learn.references import logits
from tests.learn.updates import WORLDS, moved, two_units
from tests.learn.worlds import World, acts_below, beginner, pick_world, threshold_world


def best_of(world: World, **options: Any) -> BestOf:
    settings = BestOfSettings(modules=2, **{"samples": 1, "gradient_steps": 1, **options})
    return BestOf(settings, 0, moved(beginner(world, (4,))), world, ())


def plays(learner: BestOf, state: Any, totals: list[float], action: int) -> Batch:
    """Return episodes of units 0 and 1 with these totals, every action the same."""
    batch = learner.episodes.greedy(learner.policy(state), [0, 1])
    return replace(batch, total=np.array(totals), action=np.full(len(batch), action))


@WORLDS
def test_best_of_keeps_the_best_trajectory_of_each_unit(make: Any) -> None:
    learner = best_of(two_units(make))
    state = learner.init()
    worse = plays(learner, state, [4001.0, 4000.0], 0)
    first = plays(learner, state, [3990.0, 4000.0], 1)
    after, metrics = learner.update(state, (first, worse))
    assert after.best.tolist() == [3990.0, 4000.0], "stock's is kept where none is better"
    assert after.unit.tolist() == [0] * 12
    assert after.action.tolist() == [1] * 12
    assert after.seen.tolist() == [True, True]
    assert metrics["improved_units"] == 1
    assert metrics["best_change_pct"] == pytest.approx(100 * (7990 / 8000 - 1))
    assert metrics["relative_change_pct"] == pytest.approx(100 * (8001 / 8000 - 1)), "its own play"
    better = plays(learner, state, [3991.0, 3980.0], 0)
    again, _metrics = learner.update(after, (better, worse))
    assert again.best.tolist() == [3990.0, 3980.0]
    assert again.unit.tolist() == [0] * 12 + [1] * 12
    assert again.action.tolist() == [1] * 12 + [0] * 12
    least = plays(learner, state, [3970.0, 3980.0], 0)
    last, _metrics = learner.update(again, (worse, least))
    assert last.unit.tolist() == [1] * 12 + [0] * 12, "the new one took the place of the old"
    assert np.unique(last.question).tolist() == list(range(24))
    assert (np.diff(last.question) >= 0).all()
    assert len(last.z) == len(last.question)
    assert last.step == 3
    assert last.z[-1] == pytest.approx(learner.start.normalise(least.x)[11 if make is
        threshold_world else -1 - (least.question[::-1] >= 12).sum()])  # fmt: skip


def test_best_of_holds_actions_of_the_rule() -> None:
    """Numbers of candidates are integers; the rule ``value`` has real numbers."""
    learner = best_of(pick_world(2, 5))
    first = learner.init()
    kinds = [array.dtype for array in (first.z, first.question, first.action, first.unit)]
    assert kinds == [np.float32, np.int64, np.int64, np.int64]
    start = replace(learner.start, metadata=replace(learner.start.metadata, rule="value"))
    assert replace(learner, start=start).init().action.dtype == np.float64


@WORLDS
def test_best_of_clones_stock_where_that_is_best(make: Any) -> None:
    world = two_units(make)
    learner = best_of(world)
    state = replace(learner.init(), seen=np.array([True, False]))
    z, question, action, weight = learner._examples(state)
    log = world.reference.stocks[0].trajectory
    assert z == pytest.approx(learner.start.normalise(log.rows(learner.start.features)))
    assert (question == log.questions).all()
    if make is threshold_world:
        assert (action == 0).all(), "a deviation policy does not act"
        decides = beginner(world, (4,), answers="decision")
        acting = replace(log, decisions=log.decisions.copy())
        acting.decisions["default"][3] = 1
        stocks = (replace(world.reference.stocks[0], trajectory=acting),)
        reference = replace(world.reference, stocks=stocks)
        acts = replace(learner, episodes=replace(world, reference=reference))
        only = replace(state, seen=np.array([True]), best=state.best[:1])
        assert (acts._examples(only)[2] == 0).all(), "also where the default does"
        other = replace(learner, start=decides, episodes=replace(world, reference=reference))
        seen = replace(state, seen=np.array([True]), best=state.best[:1])
        assert other._examples(seen)[2].tolist() == [0, 0, 0, 1] + [0] * 8
    else:
        assert (action == log.default).all()
    assert weight == pytest.approx(np.full(12, 1 / 12))


def test_best_of_counts_long_trajectories_by_their_root() -> None:
    learner = best_of(threshold_world(2, 12))
    state = replace(
        learner.init(), best=np.array([1.0, 4000.0]), seen=np.array([True, True]),
        z=np.zeros((3, 2), np.float32), question=np.arange(3), action=np.ones(3, np.int64),
        unit=np.zeros(3, np.int64),
    )  # fmt: skip
    _, question, action, weight = learner._examples(state)
    assert question.tolist() == list(range(15))
    assert action.tolist() == [1] * 3 + [0] * 12
    raw = np.array([1 / np.sqrt(3)] * 3 + [1 / np.sqrt(12)] * 12)
    assert weight == pytest.approx(raw / raw.sum())


def test_best_of_takes_steps_down_the_cross_entropy() -> None:
    learner = best_of(threshold_world(2, 12), smoothing=0.1, gradient_steps=4)
    state = replace(
        learner.init(), best=np.array([1.0, 4000.0]), z=np.ones((1, 2), np.float32),
        question=np.zeros(1, np.int64), action=np.ones(1, np.int64), unit=np.zeros(1, np.int64),
    )  # fmt: skip
    none = learner.episodes._batch(learner.start, [], [])
    after, metrics = learner.update(state, (none, none))
    assert after.optimiser.updates == 4
    one = replace(learner, settings=replace(learner.settings, gradient_steps=1))
    first, metrics = one.update(state, (none, none))
    p = 1 / (1 + np.exp(-logits(learner.start, state.optimiser.parameters, state.z)[0]))
    loss = -(0.9 * np.log(p) + 0.1 * np.log(1 - p))
    assert metrics["loss"] == pytest.approx(loss, rel=1e-5)
    assert metrics["best_change_pct"] == 0
    step = np.abs(first.optimiser.parameters - state.optimiser.parameters).max()
    assert step == pytest.approx(learner.settings.learning_rate, rel=1e-3)
    nothing, metrics = learner.update(learner.init(), (none, none))
    assert nothing.optimiser.updates == 0
    assert metrics["loss"] == 0


def test_best_of_draws_questions_by_seed_and_step() -> None:
    learner = best_of(threshold_world(2, 12), minibatch=5, smoothing=0.0)
    z = np.arange(6, dtype=np.float32).reshape(3, 2)
    state = replace(
        learner.init(), step=4, best=np.array([1.0, 4000.0]), z=z, question=np.arange(3),
        action=np.ones(3, np.int64), unit=np.zeros(3, np.int64),
    )  # fmt: skip
    none = learner.episodes._batch(learner.start, [], [])
    _after, metrics = learner.update(state, (none, none))
    chosen = np.random.default_rng([0, 9, 4]).choice(3, size=5, p=np.full(3, 1 / 3))
    losses = np.log1p(np.exp(-logits(learner.start, state.optimiser.parameters, z)))
    assert metrics["loss"] == pytest.approx(losses[chosen].mean(), rel=1e-5)


def test_best_of_compiles_samples_itself_and_the_others() -> None:
    world = threshold_world(3, 5)
    learner = replace(best_of(world, samples=2), others=(acts_below(30), acts_below(0)))
    batch = learner.batch(learner.init())
    requests = world.pool.requests  # type: ignore[attr-defined]
    assert len(batch) == 5
    assert [r.seed is not None for r in requests] == [True] * 4 + [False] * 6
    assert len({r.seed for r in requests[:4]}) == 4
    names = [r.policy.digest for r in requests]
    assert len(set(names[:6])) == 1, "it samples and plays its own policy"
    assert len(set(names)) == 3
    assert all(b.x.shape[1] == 2 for b in batch), "rows are as the learner sees them"
