"""One update of REINFORCE, against what its paper says, computed plainly."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from nestor.learn.algorithms.reinforce import Reinforce, ReinforceSettings
from nestor.learn.credit import CreditSettings
from tests.learn.references import clipped, numeric_gradient, reinforce_loss
from tests.learn.updates import UNIT, WORLDS, gradient_of, moved, two_units
from tests.learn.worlds import beginner, threshold_world


@WORLDS
def test_reinforce_follows_the_gradient_of_its_loss(make: Any) -> None:
    world = two_units(make)
    settings = ReinforceSettings(modules=2, entropy=0.7)
    learner = Reinforce(settings, 0, moved(beginner(world, (4,))), world)
    state = learner.init()
    batch = learner.batch(state)
    assert len(batch) == 24
    after, metrics = learner.update(state, batch)
    advantage = -np.clip(batch.share, -60, 60) / UNIT
    loss = reinforce_loss(learner.start, batch, advantage, entropy=0.7)
    expected = numeric_gradient(loss, state.optimiser.parameters)
    assert gradient_of(after) == pytest.approx(clipped(expected), abs=2e-4)
    assert metrics["loss"] == pytest.approx(loss(state.optimiser.parameters), abs=1e-5)
    assert metrics["reward"] == pytest.approx(advantage.mean())
    assert metrics["decisions"] == 24
    assert metrics["acted_pct"] == pytest.approx(100 * (batch.action != 0).mean())
    total = batch.total.sum() / batch.stock.sum() - 1
    assert metrics["relative_change_pct"] == pytest.approx(100 * total)
    assert after.step == 1
    step = after.optimiser.parameters - state.optimiser.parameters
    assert np.abs(step).max() == pytest.approx(settings.learning_rate, rel=1e-3)


def test_reinforce_against_the_moving_average_of_a_unit() -> None:
    world = two_units(threshold_world)
    credit = CreditSettings(scheme="module", decay=0.75)
    learner = Reinforce(
        ReinforceSettings(modules=2, entropy=0.0, credit=credit), 0, moved(beginner(world)), world
    )
    state = replace(learner.init(), averages=np.array([3900.0, 4100.0]))
    batch = learner.batch(state)
    after, _metrics = learner.update(state, batch)
    reward = (100 * (1 - batch.total / state.averages[batch.unit]))[batch.episode]
    loss = reinforce_loss(learner.start, batch, reward - reward.mean(), 0.0)
    expected = numeric_gradient(loss, state.optimiser.parameters)
    assert gradient_of(after) == pytest.approx(clipped(expected), abs=2e-4)
    moved_to = 0.75 * state.averages[batch.unit] + 0.25 * batch.total
    assert after.averages[batch.unit] == pytest.approx(moved_to)
