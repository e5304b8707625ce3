"""One update of behaviour cloning, against the same computed plainly."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from nestor.learn.algorithms import cloning
from nestor.learn.algorithms.cloning import Cloning, CloningSettings
from nestor.learn.batch import Batch
from nestor.learn.gradient.descent import begin
from nestor.policy import network
from tests.learn.references import numeric_gradient, reinforce_loss
from tests.learn.updates import WORLDS, gradient_of, moved, two_units
from tests.learn.worlds import threshold_world


@WORLDS
def test_cloning_steps_down_the_cross_entropy(make: Any) -> None:
    world = two_units(make)
    reference, problem = world.reference, world.reference.problem
    settings = CloningSettings(hidden=(4,), steps=100, batch_size=16, learning_rate=0.02)
    examples = reference.sample(1000, 0)
    learner = Cloning.fit(settings, 1, reference.features, examples, problem.name, problem.rule)
    state = learner.init()
    assert learner.template.widths == (2, 4, 1)
    drawn_layers = network.initial_layers((2, 4, 1), np.random.default_rng([1, 0]))
    assert (learner.template.layers[0].weight == drawn_layers[0].weight).all()
    chosen = learner.batch(state)
    draws = np.random.default_rng([1, 1, 0]).integers(24, size=16)
    assert chosen.tolist() == draws.tolist()
    assert (chosen != learner.batch(replace(state, step=1))).any()
    part = examples.select(chosen)
    if make is threshold_world:
        part = replace(part, action=np.arange(16) % 2)
        examples = replace(examples, action=np.arange(24) % 2)
        learner = replace(learner, examples=examples)
        part = examples.select(chosen)
    stub = Batch(
        part.x, part.question, part.action, log_probability=np.zeros(16),
        episode=np.zeros(16, np.int64), change=np.zeros(16), share=np.zeros(16),
        unit=np.zeros(0, np.int64), total=np.zeros(0), stock=np.zeros(0),
    )  # fmt: skip
    loss = reinforce_loss(learner.template, stub, np.ones(16), 0.0)
    after, metrics = learner.update(state, chosen)
    assert metrics["loss"] == pytest.approx(loss(state.optimiser.parameters), rel=1e-4)
    expected = numeric_gradient(loss, state.optimiser.parameters)
    assert gradient_of(after) == pytest.approx(expected, abs=3e-4)
    assert after.step == 1
    far = replace(state, optimiser=begin(moved(learner.template, 6.0)))
    steep = numeric_gradient(loss, far.optimiser.parameters)
    assert np.linalg.norm(steep) > 1
    steps = gradient_of(learner.update(far, chosen)[0])
    assert steps == pytest.approx(steep, rel=1e-3, abs=1e-3), "long gradients are not shortened"
    greedy = learner.policy(state).actions(part.x, part.question)
    assert metrics["agreement"] == pytest.approx((greedy == part.action).mean())
    for step, rate in ((0, 0.02), (50, 0.01), (100, 0.0)):
        later = replace(state, step=step)
        moved_by = (
            learner.update(later, chosen)[0].optimiser.parameters - state.optimiser.parameters
        )
        assert np.abs(moved_by).max() == pytest.approx(rate, rel=1e-3, abs=1e-9)
    whole = learner.agreement(learner.policy(state))
    actions = learner.policy(state).actions(examples.x, examples.question)
    assert whole == pytest.approx((actions == examples.action).mean())


def test_values_agree_within_a_tenth() -> None:
    own, examples = np.array([0.0, 0.05, -0.09, 0.11, 3.0]), np.zeros(5)
    assert cloning._agreeing(own, examples) == pytest.approx(3 / 5)
    whole = np.array([0, 1, 2])
    assert cloning._agreeing(whole, np.array([0, 1, 0])) == pytest.approx(2 / 3)
