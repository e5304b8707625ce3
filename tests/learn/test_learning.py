"""Every learner finds the right answers in a world where they are known, and goes on the same."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nestor.learn import checkpoint
from nestor.learn.best_of import BestOf, BestOfSettings
from nestor.learn.budget import Budget, Budgeted
from nestor.learn.cma_es import CmaEs, CmaSettings
from nestor.learn.credit import CreditSettings
from nestor.learn.dqn import Dqn, DqnSettings, Memory, epsilon_greedy
from nestor.learn.learner import Learner
from nestor.learn.ppo import Ppo, PpoSettings
from nestor.learn.random_network_distillation import NoveltySettings
from nestor.learn.random_search import RandomSearch, RandomSearchSettings, RandomSearchState
from nestor.learn.reinforce import Reinforce, ReinforceSettings
from nestor.learn.start import with_two_outputs
from nestor.learn.training import Run, train
from nestor.policy import builtin, bundle
from tests.learn.worlds import World, beginner, rightness, world

STOCK = CreditSettings(scheme="stock")
MODULE = CreditSettings(scheme="module")
NOVELTY = NoveltySettings(weight=0.2)


def reinforce(made: World, **options: Any) -> Reinforce:
    settings = ReinforceSettings(steps=50, modules=4, learning_rate=0.1, **options)
    return Reinforce(settings, 0, beginner(), made)


def ppo(made: World, **options: Any) -> Ppo:
    settings = PpoSettings(steps=40, modules=4, learning_rate=0.05, minibatch=128, **options)
    return Ppo(settings, 0, beginner((8,)), made)


def dqn(made: World, **options: Any) -> Dqn:
    settings = DqnSettings(
        steps=12, modules=4, gradient_steps=40, minibatch=128, epsilon=0.3, capacity=700,
        learning_rate=0.01, **options,
    )  # fmt: skip
    return Dqn(settings, 0, with_two_outputs(beginner((8,))), made)


def best_of(made: World) -> BestOf:
    settings = BestOfSettings(steps=16, modules=6, samples=4, learning_rate=0.03)
    other = builtin.threshold(30)
    return BestOf(settings, 0, beginner(), made, (other,))


def random_search(made: World) -> RandomSearch:
    return RandomSearch(RandomSearchSettings(steps=40, modules=4), 0, beginner(), made)


def cma_es(made: World) -> CmaEs:
    return CmaEs(CmaSettings(steps=25, modules=4), 0, beginner(), made)


LEARNERS: dict[str, Callable[[World], Learner[Any, Any]]] = {
    "reinforce": reinforce,
    "reinforce, paid by stock": lambda made: reinforce(made, credit=STOCK),
    "ppo": ppo,
    "ppo with novelty": lambda made: ppo(made, novelty=NOVELTY),
    "dqn": dqn,
    "dqn, at random": lambda made: dqn(made, explore="epsilon"),
    "best of": best_of,
    "random search": random_search,
    "cma-es": cma_es,
}


@pytest.mark.parametrize("name", LEARNERS)
def test_learns_what_is_right(name: str) -> None:
    made = world()
    learner = LEARNERS[name](made)
    state = learner.init()
    before = rightness(made, learner.policy(state))
    changes = []
    for _ in range(learner.steps):
        state, metrics = learner.update(state, learner.batch(state))
        changes.append(metrics["relative_change_pct"])
    assert before < 0.6
    least = 0.6 if name in ("best of", "reinforce, paid by stock") else 0.9
    assert rightness(made, learner.policy(state)) > least
    assert np.mean(changes[-3:]) < np.mean(changes[:3])


def test_random_search_comes_back_from_where_nothing_deviates() -> None:
    made = world()
    learner = random_search(made)
    far = learner.init().center
    far[-1] -= 1000
    state = RandomSearchState(0, far, far)
    before = rightness(made, learner.policy(state))
    _, metrics = learner.update(state, learner.batch(state))
    assert metrics["relative_change_pct"] == metrics["best_change_pct"] == 0
    for _ in range(learner.steps):
        state, _metrics = learner.update(state, learner.batch(state))
    assert before < 0.6
    assert rightness(made, learner.policy(state)) > 0.9


def test_cma_es_begins_again_where_no_candidate_is_smaller_than_stock() -> None:
    made = world()
    learner = cma_es(made)
    first = learner.init()
    asked = learner._candidates(first)
    state, edge = first, np.linspace(-1e-4, 0.1, learner.settings.population)
    for _ in range(learner.settings.patience - 1):
        state, metrics = learner.update(state, edge)
    assert metrics["width"] != learner.settings.width
    state, metrics = learner.update(state, edge)
    assert metrics["width"] == learner.settings.width
    assert bundle.to_bytes(learner.policy(state)) == bundle.to_bytes(learner.start)
    assert not np.isclose(learner._candidates(state), asked).any(), "new draws"
    for _ in range(learner.steps):
        state, _metrics = learner.update(state, learner.batch(state))
    assert rightness(made, learner.policy(state)) > 0.9


def test_credit_by_function_learns_from_fewer_compiles() -> None:
    found = {}
    for credit in (CreditSettings(scheme="function"), MODULE):
        made = world(modules=4, decisions=300)
        learner = reinforce(made, credit=credit)
        learner = replace(learner, settings=replace(learner.settings, modules=1))
        state = learner.init()
        for _ in range(18):
            state, _metrics = learner.update(state, learner.batch(state))
        found[credit.scheme] = rightness(made, learner.policy(state))
    assert found["function"] > 0.9
    assert found["module"] < 0.6


@pytest.mark.parametrize("stop", [1, 3])
@pytest.mark.parametrize("name", LEARNERS)
def test_resumed_run_ends_with_the_same_bytes(name: str, stop: int, tmp_path: Path) -> None:
    made = world()
    first = LEARNERS[name](made)
    first.batch(first.init())
    six_steps = Budget(cpu_minutes=6 * made.tally.microseconds / 60e6)

    def learner() -> Budgeted[Any, Any]:
        made = world()
        return Budgeted(LEARNERS[name](made), six_steps, made.tally)

    whole = train(learner(), Run(tmp_path / "whole", {}))
    cut, run = learner(), Run(tmp_path / "cut", {})
    state = cut.init()
    for _ in range(stop):
        state, _metrics = cut.update(state, cut.batch(state))
    run.folder.mkdir()
    checkpoint.save(run.folder / "checkpoint.safetensors", state, run.digest)
    resumed = train(learner(), run)
    assert bundle.to_bytes(resumed.policy) == bundle.to_bytes(whole.policy)
    ends = [(tmp_path / f / "checkpoint.safetensors").read_bytes() for f in ("whole", "cut")]
    assert ends[0] == ends[1]
    curves = [(tmp_path / f / "curves.jsonl").read_text().splitlines() for f in ("whole", "cut")]
    assert len(curves[0]) == 6
    assert curves[1] == curves[0][stop:]


def test_epsilon_greedy_network_answers_at_random_so_often() -> None:
    made = world()
    x = made.reference.stocks[0].trajectory.matrix(("inlining_default", "cost_estimate"))
    policy = with_two_outputs(ppo(made).start)
    moved = policy.with_parameters(
        np.random.default_rng(0).standard_normal(policy.parameters).astype(np.float32)
    )
    greedy = moved.logits(x) > 0
    probabilities = epsilon_greedy(moved, 0.1).probabilities(x)
    assert probabilities == pytest.approx(np.where(greedy, 0.95, 0.05), abs=1e-4)


def test_memory_forgets_the_oldest_and_cuts_where_it_was_overtaken() -> None:
    memory = Memory.empty(1)
    for value in range(5):
        z = np.full((3, 1), value, dtype=np.float32)
        last = np.array([False, False, True])
        memory = memory.with_rows(z, last, z[:, 0], last, capacity=7)
    assert sorted(memory.reward) == [2, 3, 3, 3, 4, 4, 4]
    newest = (memory.head - 1) % 7
    assert memory.reward[newest] == 4
    assert memory.last[newest]
    for row in range(7):
        if not memory.last[row] and row != newest:
            assert memory.reward[(row + 1) % 7] == memory.reward[row]


def test_looking_ahead_values_what_comes_later() -> None:
    """Paid at the end of a module alone, a discount below 1 still tells the answers apart."""
    made = world(modules=12, decisions=4)
    credit = CreditSettings(scheme="stock")
    learner = dqn(made, credit=credit, discount=0.9, explore="epsilon", caution=0.1)
    state = learner.init()
    for _ in range(learner.steps):
        state, metrics = learner.update(state, learner.batch(state))
    assert np.isfinite(metrics["loss"])
    assert rightness(made, learner.policy(state)) > 0.8
