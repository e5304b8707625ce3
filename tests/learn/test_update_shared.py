"""What updates have in common: novelty, entropy, groups and the moving averages."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from nestor.learn.algorithms.dqn import Dqn, DqnSettings
from nestor.learn.algorithms.ppo import Ppo, PpoSettings
from nestor.learn.algorithms.reinforce import Reinforce, ReinforceSettings
from nestor.learn.batch import Batch
from nestor.learn.credit import CreditSettings
from nestor.learn.gradient.novelty import NoveltySettings
from nestor.learn.start import with_two_outputs
from tests.learn.references import clipped, numeric_gradient, reinforce_loss
from tests.learn.updates import UNIT, dqn, gradient_of, moved
from tests.learn.worlds import beginner, pick_world, threshold_world


@pytest.mark.parametrize("kind", ["reinforce", "ppo"])
def test_novelty_is_added_to_the_advantage(kind: str) -> None:
    world = pick_world(2, 12)
    novel = NoveltySettings(weight=0.8)
    if kind == "reinforce":
        learner: Any = Reinforce(
            ReinforceSettings(modules=2, novelty=novel), 0, beginner(world), world
        )
    else:
        learner = Ppo(PpoSettings(modules=2, novelty=novel, epochs=1), 0, beginner(world), world)
    learner = replace(learner, start=moved(learner.start))
    state = learner.init()
    assert len(state.novelty.predictor.parameters) > 0
    batch = learner.batch(state)
    after, _metrics = learner.update(state, batch)
    assert after.novelty.predictor.updates == 1
    found = set()
    for weight in (0.8, 0.0):
        bonus = weight * _errors(after, state, learner, batch)
        advantage = -np.clip(batch.share, -60, 60) / UNIT + bonus
        loss = reinforce_loss(learner.start, batch, advantage, entropy=0.2)
        expected = numeric_gradient(loss, state.optimiser.parameters)
        found.add(bool(np.allclose(gradient_of(after), clipped(expected), atol=3e-4)))
    assert found == {True, False}


def _errors(after: Any, state: Any, learner: Any, batch: Batch) -> Any:
    """Return the predictor's errors on the chosen rows as a part of their mean."""
    from nestor.learn.batch import chosen_rows
    from nestor.learn.gradient import novelty

    z = learner.start.normalise(batch.x)
    z = z[chosen_rows(learner.start.rule, batch.question, batch.action)]
    _, bonus = novelty.update(NoveltySettings(weight=1.0), state.novelty, z, learner.seed)
    return bonus


@pytest.mark.parametrize("kind", ["reinforce", "ppo"])
def test_entropy_draws_towards_a_half(kind: str) -> None:
    """Where nothing is gained or lost, only the entropy moves the probability: up from 0.2."""
    world = threshold_world(2, 12)
    settings: Any = ReinforceSettings(modules=2) if kind == "reinforce" else PpoSettings(modules=2)
    learner: Any = (Reinforce if kind == "reinforce" else Ppo)(settings, 0, beginner(world), world)
    state = learner.init()
    batch = replace(learner.batch(state), share=np.zeros(24))
    after, _metrics = learner.update(state, batch)
    before = learner.policy(state).probabilities(batch.x)
    assert before == pytest.approx(0.2)
    assert learner.policy(after).probabilities(batch.x).mean() > 0.2


@pytest.mark.parametrize("kind", ["reinforce", "ppo", "dqn"])
def test_groups_draw_alike_in_every_second_episode(kind: str) -> None:
    world = threshold_world(4, 5)
    for groups in (True, False):
        options = {"modules": 4, "groups": groups}
        learner: Any = {
            "reinforce": lambda o=options: Reinforce(
                ReinforceSettings(**o), 0, beginner(world), world
            ),
            "ppo": lambda o=options: Ppo(PpoSettings(**o), 0, beginner(world), world),
            "dqn": lambda o=options: Dqn(
                DqnSettings(**o, temperature=0.6), 0, with_two_outputs(beginner(world)), world
            ),
        }[kind]()  # type: ignore[no-untyped-call]
        requests = world.pool.requests  # type: ignore[attr-defined]
        requests.clear()
        learner.batch(learner.init())
        assert [request.by_group for request in requests] == [False, groups, False, groups]
        assert len({request.seed for request in requests}) == 4
        assert {request.temperature for request in requests} == {0.6 if kind == "dqn" else None}
        units = [request.unit.name for request in requests]
        assert sorted(units) == [f"m{n}.o" for n in range(4)]


@pytest.mark.parametrize("kind", ["reinforce", "ppo", "dqn"])
def test_nothing_is_learned_where_every_compile_failed(kind: str) -> None:
    world = threshold_world(2, 5)
    learner: Any = {"reinforce": Reinforce, "ppo": Ppo, "dqn": Dqn}[kind]
    settings: Any = {"reinforce": ReinforceSettings, "ppo": PpoSettings, "dqn": DqnSettings}[kind]
    start = with_two_outputs(beginner(world)) if kind == "dqn" else beginner(world)
    learner = learner(settings(), 0, start, world)
    state = learner.init()
    none = world._batch(start, [], [])
    after, metrics = learner.update(state, none)
    assert after.step == 1
    assert after.optimiser is state.optimiser
    assert metrics == {"relative_change_pct": 0}


@pytest.mark.parametrize("kind", ["reinforce", "ppo", "dqn"])
def test_nothing_but_one_decision_is_enough_to_learn(kind: str) -> None:
    world = threshold_world(1, 1)
    learner: Any = {
        "reinforce": lambda: Reinforce(ReinforceSettings(modules=1), 0, beginner(world), world),
        "ppo": lambda: Ppo(PpoSettings(modules=1, epochs=1), 0, beginner(world), world),
        "dqn": lambda: dqn(world),
    }[kind]()  # type: ignore[no-untyped-call]
    state = learner.init()
    after, metrics = learner.update(state, replace(learner.batch(state), share=np.ones(1)))
    assert after.optimiser.updates == 1
    assert metrics["decisions"] == 1


@pytest.mark.parametrize("kind", ["ppo", "dqn"])
def test_ppo_and_dqn_keep_the_moving_averages(kind: str) -> None:
    world = threshold_world(2, 12)
    credit = CreditSettings(scheme="module", decay=0.75)
    learner: Any = dqn(world, credit=credit)
    if kind == "ppo":
        learner = Ppo(PpoSettings(modules=2, epochs=1, credit=credit), 0, beginner(world), world)
    state = learner.init()
    batch = learner.batch(state)
    after, _metrics = learner.update(state, batch)
    expected = 0.75 * state.averages[batch.unit] + 0.25 * batch.total
    assert after.averages[batch.unit] == pytest.approx(expected)
