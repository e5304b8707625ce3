"""One update of PPO, against what its paper says, computed plainly."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from nestor.learn.algorithms.ppo import Ppo, PpoSettings
from nestor.learn.batch import Batch
from tests.learn.references import clipped, logits, numeric_gradient, ppo_loss
from tests.learn.updates import UNIT, WORLDS, gradient_of, moved, two_units
from tests.learn.worlds import beginner, threshold_world


def shifted(batch: Batch, seed: int = 5) -> Batch:
    """Return the batch as if another policy had sampled it: ratios far from 1, both ways."""
    shift = np.random.default_rng(seed).choice([-0.5, -0.1, 0.0, 0.1, 0.5], len(batch))
    return replace(batch, log_probability=batch.log_probability + shift)


@WORLDS
@pytest.mark.parametrize("clip", [0.2, 0.05])
def test_ppo_follows_the_gradient_of_the_clipped_loss(make: Any, clip: float) -> None:
    world = two_units(make)
    settings = PpoSettings(modules=2, epochs=1, clip=clip, entropy=0.3, minibatch=100)
    learner = Ppo(settings, 0, moved(beginner(world, (4,))), world)
    state = learner.init()
    batch = shifted(learner.batch(state))
    after, metrics = learner.update(state, batch)
    advantage = -np.clip(batch.share, -60, 60) / UNIT
    if make is threshold_world:
        assert {float(a) for a in np.sign(advantage)} == {-1.0, 0.0, 1.0}
    loss = ppo_loss(learner.start, batch, advantage, 0.3, clip)
    expected = numeric_gradient(loss, state.optimiser.parameters)
    unclipped = numeric_gradient(
        ppo_loss(learner.start, batch, advantage, 0.3, 1e9), state.optimiser.parameters
    )
    assert not np.allclose(clipped(expected), clipped(unclipped), atol=1e-2)
    assert gradient_of(after) == pytest.approx(clipped(expected), abs=2e-4)
    assert metrics["loss"] == pytest.approx(loss(state.optimiser.parameters), abs=1e-5)
    assert metrics["reward"] == pytest.approx(advantage.mean())
    assert metrics["decisions"] == len(batch)
    assert metrics["acted_pct"] == batch.acted_pct
    total = batch.total.sum() / batch.stock.sum() - 1
    assert metrics["relative_change_pct"] == pytest.approx(100 * total)
    assert after.step == 1
    step = after.optimiser.parameters - state.optimiser.parameters
    assert np.abs(step).max() == pytest.approx(settings.learning_rate, rel=1e-3)


def test_ppo_has_no_gradient_beyond_the_band() -> None:
    """Where every ratio is past the band in the direction that pays, nothing moves."""
    world = threshold_world(2, 12)
    learner = Ppo(PpoSettings(modules=2, epochs=1, entropy=0.0), 0, moved(beginner(world)), world)
    state = learner.init()
    batch = learner.batch(state)
    advantage = -np.clip(batch.share, -60, 60) / UNIT
    beyond = batch.log_probability - 0.3 * np.sign(advantage)
    after, _metrics = learner.update(state, replace(batch, log_probability=beyond))
    assert (after.optimiser.parameters == state.optimiser.parameters).all()


def test_ppo_stops_when_it_has_gone_far() -> None:
    world = threshold_world(2, 12)
    endless = PpoSettings(modules=2, epochs=5, stop=float("inf"), learning_rate=0.05, minibatch=9)
    learner = Ppo(endless, 0, beginner(world, (4,)), world)
    state = learner.init()
    batch = learner.batch(state)
    after, all_of_them = learner.update(state, batch)
    assert all_of_them["epochs"] == 5
    assert after.optimiser.updates == 5 * 3, "minibatches of 9, 9 and 6"
    first = replace(learner, settings=replace(endless, epochs=1))
    second = replace(learner, settings=replace(endless, epochs=2))
    one, two = (found.update(state, batch)[1]["divergence"] for found in (first, second))
    assert 0 < one < two < all_of_them["divergence"]
    stopping = replace(learner, settings=replace(endless, stop=(one + two) / 2))
    assert stopping.update(state, batch)[1]["epochs"] == 2
    just = replace(learner, settings=replace(endless, epochs=2, stop=one))
    assert just.update(state, batch)[1]["epochs"] == 2, "a divergence of the limit is allowed"
    at_once = replace(learner, settings=replace(endless, stop=one / 2))
    ended, metrics = at_once.update(state, batch)
    assert metrics["epochs"] == 1
    z = learner.start.normalise(batch.x)
    values = logits(learner.start, ended.optimiser.parameters, z)
    now = -np.log1p(np.exp(np.where(batch.action > 0, -values, values)))
    change = now - batch.log_probability
    assert metrics["divergence"] == pytest.approx(np.mean(np.exp(change) - 1 - change), rel=1e-3)


def test_ppo_draws_its_minibatches_by_seed_step_and_epoch() -> None:
    world = threshold_world(2, 12)
    settings = PpoSettings(modules=2, epochs=2, minibatch=20, entropy=0.0, learning_rate=0.0)
    learner = Ppo(settings, 3, beginner(world), world)
    state = replace(learner.init(), step=5)
    batch = replace(learner.batch(state), share=np.arange(24.0))
    last = np.random.default_rng([3, 7, 5, 2]).permutation(24)[20:]
    _after, metrics = learner.update(state, batch)
    assert metrics["loss"] == pytest.approx(last.mean() / UNIT), "of the last minibatch"


def test_ppo_without_epochs_stays_where_it_is() -> None:
    world = threshold_world(2, 12)
    learner = Ppo(PpoSettings(modules=2, epochs=0), 0, beginner(world), world)
    state = learner.init()
    after, metrics = learner.update(state, learner.batch(state))
    assert after.optimiser is state.optimiser
    assert (metrics["epochs"], metrics["loss"], metrics["divergence"]) == (0, 0, 0)
