"""Where learners start: at the default's answer, with room to explore."""

from dataclasses import replace

import numpy as np
import pytest

from nestor.learn.start import StartSettings, start
from nestor.policy.rule import PICK, VALUE
from tests.learn.worlds import build_world, pick_world, showing_the_default


@pytest.mark.parametrize("explore", [0.03, 0.2])
@pytest.mark.parametrize("hidden", [(), (32, 32), (4,), (8, 8, 8)])
def test_a_policy_that_reads_the_default_starts_there(
    hidden: tuple[int, ...], explore: float
) -> None:
    reference = showing_the_default(pick_world()).reference
    policy = start(reference, StartSettings(hidden=hidden, explore=explore), 0)
    examples = reference.sample(10_000, 0)
    assert policy.metadata.answers == "decision"
    assert (policy.actions(examples.x, examples.question) == examples.action).all()
    logits = policy.logits(examples.x)
    others = logits[examples.x[:, 2] == 0]
    assert others == pytest.approx(np.zeros(len(others)), abs=1e-5), "nothing else is read yet"
    chance = np.exp(PICK.log_probability(logits, examples.question, examples.action))
    assert chance.mean() == pytest.approx(1 - explore, abs=0.1 * explore)
    count = np.bincount(examples.question)
    odds = [((1 - chance) / chance)[count == number].mean() for number in (2, 3, 6)]
    assert np.array(odds) / odds[0] == pytest.approx([1, 2, 5], rel=1e-3), "each has its chance"


def test_without_that_feature_all_candidates_are_alike() -> None:
    shown = showing_the_default(pick_world()).reference
    for reference in (pick_world().reference, replace(shown, features=("age", "benefit"))):
        examples = reference.sample(10_000, 0)
        assert (start(reference, StartSettings(), 0).logits(examples.x) == 0).all()


def test_a_default_that_has_no_rival_is_no_feature() -> None:
    """Questions of one candidate each: the feature is 1 in all rows."""
    world = pick_world()
    logs = []
    for stock in world.reference.stocks:
        log = stock.trajectory
        assert log.candidates is not None
        log.decisions["default"] = 0
        first = np.searchsorted(log.questions, np.arange(len(log)))
        logs.append(replace(log, candidates=log.candidates[first], question=np.arange(len(log))))
    single = build_world(PICK, logs, lambda log: np.zeros(len(log)), world.right)
    reference = showing_the_default(single).reference
    for hidden in ((), (32, 32)):
        policy = start(reference, StartSettings(hidden=hidden), 0)
        assert (policy.logits(reference.sample(10_000, 0).x) == 0).all()


def test_a_number_starts_at_nought() -> None:
    """Under the rule value, though the default be read: its answer is no candidate."""
    world = pick_world()
    problem = replace(world.reference.problem, rule=VALUE, default_column="age")
    logs = []
    for stock in world.reference.stocks:
        log = stock.trajectory
        records = np.zeros(len(log), [(n, "<f8") for n in ("age", "answer")])
        records["age"] = np.arange(len(log))
        logs.append(
            replace(
                stock,
                trajectory=replace(
                    log,
                    features=("age",),
                    decisions=records,
                    default_column="age",
                    candidates=None,
                    question=None,
                ),
            )
        )
    reference = replace(world.reference, problem=problem, features=("age",), stocks=tuple(logs))
    policy = start(reference, StartSettings(hidden=()), 0)
    assert (policy.logits(reference.sample(10_000, 0).x) == 0).all()
