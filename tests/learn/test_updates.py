"""One update of each learner by gradient, against what its paper says, computed plainly."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from nestor.learn.algorithms.best_of import BestOf, BestOfSettings
from nestor.learn.algorithms.cloning import Cloning, CloningSettings
from nestor.learn.algorithms.dqn import Dqn, DqnSettings, DqnState, _scaled, epsilon_greedy
from nestor.learn.algorithms.ppo import Ppo, PpoSettings
from nestor.learn.algorithms.reinforce import Reinforce, ReinforceSettings
from nestor.learn.batch import Batch
from nestor.learn.credit import CreditSettings
from nestor.learn.gradient.descent import begin
from nestor.learn.gradient.memory import Memory
from nestor.learn.gradient.novelty import NoveltySettings
from nestor.learn.start import with_two_outputs
from nestor.policy import network
from nestor.policy.network import MlpPolicy
from tests.learn.references import (
    clipped,
    logits,
    numeric_gradient,
    outputs,
    ppo_loss,
    reinforce_loss,
)
from tests.learn.worlds import World, acts_below, beginner, pick_world, threshold_world

WORLDS = pytest.mark.parametrize("make", [threshold_world, pick_world])
UNIT = 16.0
"""Bytes that are one unit of reward in these worlds."""


def moved(policy: MlpPolicy, size: float = 0.3, seed: int = 3) -> MlpPolicy:
    """Return the policy with random parameters."""
    drawn = np.random.default_rng(seed).standard_normal(policy.parameters) * size
    return policy.with_parameters(drawn.astype(np.float32))


def gradient_of(state: Any) -> Any:
    """Return the gradient of the first step: the running mean has taken a tenth of it."""
    assert state.optimiser.updates == 1
    return state.optimiser.mean / 0.1


def two_units(make: Any) -> World:
    """A world of a few questions, so that plain references are quick."""
    made: World = make(2, 12)
    return made


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


# --- Q-learning -----------------------------------------------------------------------------------


def dqn(world: World, hidden: tuple[int, ...] = (4,), **options: Any) -> Dqn:
    first = moved(beginner(world, hidden))
    start = with_two_outputs(first) if world.reference.problem.rule.name == "threshold" else first
    start = moved(start)
    settings = DqnSettings(
        modules=2, **{"gradient_steps": 1, "minibatch": 64, "temperature": 5.0, **options}
    )
    return Dqn(settings, 0, start, world)


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


# --- imitation ------------------------------------------------------------------------------------


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
