"""Every learner finds the right answers in worlds where they are given, and resumes exactly."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nestor.learn import checkpoint
from nestor.learn.algorithms.ars import RandomSearch, RandomSearchSettings, RandomSearchState
from nestor.learn.algorithms.best_of import BestOf, BestOfSettings
from nestor.learn.algorithms.cloning import Cloning, CloningSettings, clone
from nestor.learn.algorithms.cma_es import CmaEs, CmaSettings
from nestor.learn.algorithms.dqn import Dqn, DqnSettings
from nestor.learn.algorithms.ppo import Ppo, PpoSettings
from nestor.learn.algorithms.reinforce import Reinforce, ReinforceSettings
from nestor.learn.blackbox.candidates import by_units
from nestor.learn.budget import Budget, Budgeted
from nestor.learn.credit import CreditSettings
from nestor.learn.gradient.novelty import NoveltySettings
from nestor.learn.learner import Learner
from nestor.learn.start import StartSettings, start, with_two_outputs
from nestor.learn.training import Run, train
from nestor.policy import bundle
from nestor.policy.rule import THRESHOLD
from tests.learn.trying import portfolio, two_sided_world
from tests.learn.worlds import (
    World,
    acts_below,
    beginner,
    coupled_world,
    pick_world,
    showing_the_default,
    threshold_world,
)

STOCK = CreditSettings(scheme="stock")
MODULE = CreditSettings(scheme="module")
NOVELTY = NoveltySettings(weight=0.2)


def reinforce(world: World, **options: Any) -> Reinforce:
    settings = ReinforceSettings(steps=50, modules=4, learning_rate=0.1, **options)
    return Reinforce(settings, 0, beginner(world), world)


def ppo(world: World, **options: Any) -> Ppo:
    settings = PpoSettings(steps=40, modules=4, learning_rate=0.05, minibatch=128, **options)
    return Ppo(settings, 0, beginner(world, (8,)), world)


def dqn(world: World, **options: Any) -> Dqn:
    first = beginner(world, (8,))
    two = first.rule == THRESHOLD
    settings = DqnSettings(
        steps=12 if two else 24, modules=4, gradient_steps=40, minibatch=128, epsilon=0.3,
        capacity=700, learning_rate=0.01, **options,
    )  # fmt: skip
    return Dqn(settings, 0, with_two_outputs(first) if two else first, world)


def best_of(world: World) -> BestOf:
    settings = BestOfSettings(steps=16, modules=6, samples=4, learning_rate=0.03)
    others = (acts_below(30),) if world.reference.problem.rule == THRESHOLD else ()
    return BestOf(settings, 0, beginner(world), world, others)


def random_search(world: World) -> RandomSearch:
    return RandomSearch(RandomSearchSettings(steps=40, modules=4), 0, beginner(world), world)


def cma_es(world: World) -> CmaEs:
    settings = CmaSettings(steps=25, modules=4)
    return CmaEs(settings, 0, beginner(world), by_units(world, 0, settings.modules))


LEARNERS: dict[str, Callable[[World], Learner[Any, Any]]] = {
    "reinforce": reinforce,
    "reinforce, credit against stock": lambda world: reinforce(world, credit=STOCK),
    "ppo": ppo,
    "ppo with novelty": lambda world: ppo(world, novelty=NOVELTY),
    "dqn": dqn,
    "dqn, at random": lambda world: dqn(world, explore="epsilon"),
    "best of": best_of,
    "random search": random_search,
    "cma-es": cma_es,
}


def learned(world: World, learner: Learner[Any, Any]) -> tuple[float, float, list[float]]:
    """Return the rightness before and after, and the relative changes in per cent."""
    state = learner.init()
    before = world.rightness(learner.policy(state))
    changes = []
    for _ in range(learner.steps):
        state, metrics = learner.update(state, learner.batch(state))
        changes.append(metrics["relative_change_pct"])
    return before, world.rightness(learner.policy(state)), changes


@pytest.mark.parametrize("name", LEARNERS)
def test_learns_when_to_act(name: str) -> None:
    world = threshold_world()
    before, after, changes = learned(world, LEARNERS[name](world))
    assert before < 0.6
    assert after > (0.6 if name in ("best of", "reinforce, credit against stock") else 0.9)
    assert np.mean(changes[-3:]) < np.mean(changes[:3])


@pytest.mark.parametrize("name", ["reinforce", "ppo", "dqn", "random search", "cma-es", "best of"])
def test_learns_which_candidate_to_pick(name: str) -> None:
    world = pick_world()
    before, after, changes = learned(world, LEARNERS[name](world))
    assert before < 0.5
    # Imitating whole trajectories sees only what many right answers at once are worth.
    assert after > {"best of": before + 0.05, "dqn": 0.8}.get(name, 0.9)
    assert np.mean(changes[-3:]) < np.mean(changes[:3])


@pytest.mark.parametrize("name", ["reinforce", "ppo", "cma-es"])
def test_learns_that_two_decisions_pay_only_together(name: str) -> None:
    world = coupled_world()
    before, after, _changes = learned(world, LEARNERS[name](world))
    assert before < 0.6
    assert after > 0.9


def test_draws_of_their_own_never_show_that_two_decisions_pay_together() -> None:
    world = coupled_world()
    _before, after, _changes = learned(world, ppo(world, groups=False))
    assert after < 0.6


@pytest.mark.parametrize("hidden", [(), (8,)])
def test_a_clone_picks_as_the_default_does(hidden: tuple[int, ...]) -> None:
    world = pick_world()
    reference, problem = world.reference, world.reference.problem
    examples = reference.sample(10_000, 0)
    settings = CloningSettings(hidden=hidden, steps=300, batch_size=64)
    features = reference.features
    learner = Cloning.fit(settings, 0, features, examples, problem.name, problem.rule)
    assert learner.agreement(learner.policy(learner.init())) < 0.6
    assert learner.agreement(clone(learner)) > 0.95


def test_starts_of_a_problem_with_candidates() -> None:
    reference = pick_world().reference
    alike = start(reference, StartSettings(), 0)
    examples = reference.sample(10_000, 0)
    assert (alike.logits(examples.x) == 0).all()
    assert alike.metadata.answers == "decision"
    settings = StartSettings(answers="decision", hidden=(), clone_steps=400)
    cloned = start(reference, settings, 0)
    assert (cloned.actions(examples.x, examples.question) == examples.action).mean() > 0.9


@pytest.mark.parametrize("hidden", [(), (8,)])
@pytest.mark.parametrize("name", ["reinforce", "ppo", "cma-es"])
def test_learns_which_candidate_to_pick_from_the_default_on(
    name: str, hidden: tuple[int, ...]
) -> None:
    world = showing_the_default(pick_world())
    first = start(world.reference, StartSettings(hidden=hidden), 0)
    seen = {"judge": by_units(world, 0, 4)} if name == "cma-es" else {"episodes": world}
    learner: Any = replace(LEARNERS[name](pick_world()), start=first, **seen)  # type: ignore[type-var]
    before, after, changes = learned(world, learner)
    assert before < 0.3
    assert after > 0.85
    assert np.mean(changes[-3:]) < np.mean(changes[:3])


def test_random_search_comes_back_from_where_nothing_deviates() -> None:
    world = threshold_world()
    learner = random_search(world)
    far = learner.init().center.copy()
    far[-1] -= 1000
    state = RandomSearchState(0, far, far)
    before = world.rightness(learner.policy(state))
    after, metrics = learner.update(state, learner.batch(state))
    assert metrics["relative_change_pct"] == metrics["best_change_pct"] == 0
    assert after.center == pytest.approx((learner.init().center + far) / 2)
    for _ in range(learner.steps):
        state, _metrics = learner.update(state, learner.batch(state))
    assert before < 0.6
    assert world.rightness(learner.policy(state)) > 0.9


def test_credit_by_function_learns_from_fewer_compiles() -> None:
    found = {}
    for credit in (CreditSettings(scheme="function"), MODULE):
        world = threshold_world(units=4, questions=300)
        learner = reinforce(world, credit=credit)
        learner = replace(learner, settings=replace(learner.settings, modules=1))
        state = learner.init()
        for _ in range(18):
            state, _metrics = learner.update(state, learner.batch(state))
        found[credit.scheme] = world.rightness(learner.policy(state))
    assert found["function"] > 0.9
    assert found["module"] < 0.6


RESUMED = [
    (name, world)
    for name in LEARNERS
    for world in (threshold_world, pick_world)
    if name != "dqn, at random" or world is threshold_world  # what random answers are for
]
RESUMED.append(("portfolio", two_sided_world))


@pytest.mark.parametrize("stop", [1, 3])
@pytest.mark.parametrize(("name", "world"), RESUMED)
def test_resumed_run_ends_with_the_same_bytes(
    name: str, world: Callable[[], World], stop: int, tmp_path: Path
) -> None:
    def learner() -> Budgeted[Any, Any]:
        made = world()
        whole: Any = {**LEARNERS, "portfolio": portfolio}[name](made)
        six_steps = replace(whole, settings=replace(whole.settings, steps=6))
        return Budgeted(six_steps, Budget(), made.tally)

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


def test_looking_ahead_values_what_comes_later() -> None:
    """Rewarded at the end of a unit alone, a discount below 1 still tells the answers apart."""
    world = threshold_world(units=12, questions=4)
    learner = dqn(world, credit=STOCK, discount=0.9, explore="epsilon", caution=0.1)
    state = learner.init()
    for _ in range(learner.steps):
        state, metrics = learner.update(state, learner.batch(state))
    assert np.isfinite(metrics["loss"])
    assert world.rightness(learner.policy(state)) > 0.8
