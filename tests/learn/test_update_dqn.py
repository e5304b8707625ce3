"""One update of DQN, against what its paper says, computed plainly."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from nestor.learn.algorithms.dqn import Dqn, DqnState, _scaled, epsilon_greedy
from nestor.learn.credit import CreditSettings
from nestor.learn.gradient.memory import Memory
from nestor.learn.start import with_two_outputs
from tests.learn.references import clipped, numeric_gradient, outputs
from tests.learn.updates import UNIT, WORLDS, dqn, gradient_of, moved, two_units
from tests.learn.worlds import beginner, pick_world, threshold_world


def drawn(learner: Dqn, memory: Memory, step: int = 0) -> Memory:
    """Return what the first minibatch of an update holds, half of either action."""
    generator = np.random.default_rng([learner.seed, 8, step])
    if learner.start.rule.name == "threshold":
        sides = [np.flatnonzero(memory.action == 1), np.flatnonzero(memory.action == 0)]
    else:
        sides = [np.arange(len(memory))]
    size = learner.settings.minibatch // len(sides)
    return memory.select(np.concatenate([s[generator.integers(len(s), size=size)] for s in sides]))


def values(learner: Dqn, parameters: Any, memory: Memory) -> Any:
    """Return the value of each question's action, and the greatest value of the question."""
    found = outputs(learner.start, parameters, memory.z)
    own, best = [], []
    for number in range(len(memory)):
        rows = found[memory.question == number]
        every = rows[0] if rows.shape[1] == 2 else rows[:, 0]
        own.append(every[memory.action[number]])
        best.append(every.max())
    return np.array(own), np.array(best)


@WORLDS
def test_dqn_regresses_values_on_rewards(make: Any) -> None:
    world = two_units(make)
    learner = dqn(world)
    state = learner.init()
    batch = learner.batch(state)
    after, metrics = learner.update(state, batch)
    part = drawn(learner, after.memory)
    assert set(part.reward.tolist()) <= set((-batch.share / UNIT).astype(np.float32).tolist())

    def loss(parameters: Any) -> float:
        return float(((values(learner, parameters, part)[0] - part.reward) ** 2).mean())

    expected = numeric_gradient(loss, state.optimiser.parameters)
    assert gradient_of(after) == pytest.approx(clipped(expected), abs=3e-4)
    assert metrics["loss"] == pytest.approx(loss(state.optimiser.parameters), rel=1e-4)
    assert metrics["remembered"] == len(after.memory)
    assert metrics["decisions"] == len(batch) == 24
    assert metrics["reward"] == pytest.approx((-batch.share / UNIT).mean())
    assert metrics["acted_pct"] == batch.acted_pct
    total = batch.total.sum() / batch.stock.sum() - 1
    assert metrics["relative_change_pct"] == pytest.approx(100 * total)
    assert after.step == 1
    assert (after.averages == state.averages).all()


@WORLDS
@pytest.mark.parametrize("discount", [0.7, 1.0])
def test_dqn_looks_ahead_by_the_target_network(make: Any, discount: float) -> None:
    world = two_units(make)
    learner = dqn(world, discount=discount)
    state = learner.init()
    other = np.random.default_rng(8).standard_normal(len(state.target)) * 0.5
    state = replace(state, target=other)
    batch = learner.batch(state)
    after, metrics = learner.update(state, batch)
    few = replace(learner, settings=replace(learner.settings, minibatch=4))
    assert len(few.update(state, batch)[0].memory) == 24, "each needs its successor"
    memory = after.memory
    successor = memory.select((np.arange(24) + 1) % 24)
    ahead = np.where(memory.last, 0.0, discount * values(learner, other, successor)[1])
    goals = replace(memory, reward=(memory.reward + ahead).astype(np.float32))
    part = drawn(learner, goals)
    own = values(learner, state.optimiser.parameters, part)[0]
    assert metrics["loss"] == pytest.approx(((own - part.reward) ** 2).mean(), rel=1e-4)


def test_dqn_rewards_the_end_of_a_unit_once_when_it_looks_ahead() -> None:
    world = two_units(threshold_world)
    for discount, nonzero in ((0.5, 2), (0.0, 24)):
        learner = dqn(world, discount=discount, credit=CreditSettings(scheme="stock"))
        batch = learner.batch(learner.init())
        batch = replace(batch, total=np.array([3990.0, 4020.0]))
        after, _metrics = learner.update(learner.init(), batch)
        assert np.count_nonzero(after.memory.reward) == min(nonzero, len(after.memory))


def test_the_target_network_lags_behind() -> None:
    world = two_units(threshold_world)
    found = {}
    for average in (0.999, 0.5, 0.0):
        learner = dqn(world, average=average, gradient_steps=3)
        state = learner.init()
        batch = learner.batch(state)
        target, walk = state.target, []
        for steps in (1, 2, 3):  # the same draws: a prefix of the longer updates
            short = replace(learner, settings=replace(learner.settings, gradient_steps=steps))
            walk.append(short.update(state, batch)[0])
        for number, after in enumerate(walk, 1):
            left = min(average, (1 + number) / (10 + number))
            target = left * target + (1 - left) * after.optimiser.parameters
            assert after.target == pytest.approx(target, abs=1e-12)
        found[average] = walk[-1]
    assert not np.allclose(found[0.999].target, found[0.999].optimiser.parameters)
    assert (found[0.0].target == found[0.0].optimiser.parameters).all()
    assert np.allclose(found[0.999].optimiser.parameters, found[0.0].optimiser.parameters)


@pytest.mark.parametrize(("caution", "hidden"), [(0.0, (4,)), (0.4, ()), (0.4, (4, 3))])
def test_the_final_policy_is_the_cautious_target(caution: float, hidden: tuple[int, ...]) -> None:
    world = two_units(threshold_world)
    learner = dqn(world, hidden, caution=caution)
    state = learner.init()
    other = np.random.default_rng(8).standard_normal(len(state.target))
    policy = learner.policy(replace(state, target=other))
    x = world.reference.sample(100, 0).x
    two = outputs(learner.start, other, learner.start.normalise(x))
    assert policy.logits(x) == pytest.approx(two[:, 1] - two[:, 0] - caution, abs=1e-5)
    pick = dqn(pick_world(2, 5), caution=caution)
    parameters = pick.policy(pick.init()).flatten_parameters()
    assert (parameters == pick.init().target.astype(np.float32)).all()


def test_an_update_remembers_no_more_of_the_commoner_action() -> None:
    world = threshold_world(2, 200)
    learner = dqn(world, minibatch=10)
    state = learner.init()
    start = learner.start.normalise(world.reference.sample(9, 0).x)[:1]
    action = np.array(([1] + [0] * 9) * 40)
    batch = replace(learner.batch(state), action=action)
    after, _metrics = learner.update(state, batch)
    assert np.bincount(after.memory.action).tolist() == [40, 40]
    acted = np.flatnonzero(action)
    kept = -batch.share[acted] / UNIT
    assert after.memory.reward[after.memory.action == 1] == pytest.approx(kept), "in their order"
    # Which ones of the commoner action: those that this generator draws.
    generator = np.random.default_rng([learner.seed, 12, 0])
    generator.permutation(acted)
    passed = np.flatnonzero(action == 0)
    order = np.sort(np.concatenate([acted, generator.permutation(passed)[:40]]))
    batch = replace(batch, share=np.arange(400.0) / 8)
    after, _metrics = learner.update(state, batch)
    assert after.memory.reward == pytest.approx(-batch.share[order] / UNIT)
    few = replace(learner, settings=replace(learner.settings, minibatch=100))
    after, _metrics = few.update(state, batch)
    assert np.bincount(after.memory.action).tolist() == [100, 40], "a minibatch, at least"
    assert start.shape == (1, 2)


def test_dqn_state_goes_on_from_what_it_remembers() -> None:
    world = two_units(threshold_world)
    learner = dqn(world, capacity=30, discount=0.5)
    state: DqnState = learner.init()
    for step in range(3):
        batch = learner.batch(state)
        state, metrics = learner.update(state, batch)
        assert metrics["remembered"] == min(30, 24 * (step + 1))
    assert state.memory.reward[-24:] == pytest.approx(-batch.share / UNIT)
    assert state.optimiser.updates == 3


def test_epsilon_greedy_network_answers_at_random_so_often() -> None:
    world = threshold_world()
    x = world.reference.sample(500, 0).x
    two = moved(with_two_outputs(beginner(world, (8,))))
    for policy in (two, *(moved(beginner(world, hidden)) for hidden in ((), (8,), (8, 5)))):
        greedy = policy.logits(x) > 0
        probabilities = epsilon_greedy(policy, 0.1).probabilities(x)
        assert probabilities == pytest.approx(np.where(greedy, 0.95, 0.05), abs=1e-4)


def test_dqn_explores_as_its_settings_say() -> None:
    world = two_units(threshold_world)
    learner = dqn(world, explore="epsilon", epsilon=0.2)
    requests = world.pool.requests  # type: ignore[attr-defined]
    learner.batch(learner.init())
    sent = requests[-1].policy.policy
    expected = epsilon_greedy(learner.start, 0.2)
    assert (sent.flatten_parameters() == expected.flatten_parameters()).all()
    assert requests[-1].temperature is None


def test_dqn_without_gradient_steps_only_remembers() -> None:
    learner = dqn(two_units(threshold_world), gradient_steps=0)
    state = learner.init()
    after, metrics = learner.update(state, learner.batch(state))
    assert after.optimiser is state.optimiser
    assert after.target is state.target
    assert metrics["loss"] == 0
    assert metrics["remembered"] == 24


def test_dqn_of_candidates_remembers_all() -> None:
    learner = dqn(pick_world(2, 12), minibatch=2)
    after, _metrics = learner.update(learner.init(), learner.batch(learner.init()))
    assert len(after.memory) == 24


def test_dqn_start_in_units_of_reward() -> None:
    x = np.array([[0.0, 3.0], [0.0, -9.0]])
    for hidden in ((), (4,), (4, 3)):
        policy = moved(beginner(threshold_world(1, 4), hidden))
        assert _scaled(policy, 0.3).logits(x) == pytest.approx(0.3 * policy.logits(x))
