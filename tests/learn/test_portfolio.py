"""The learner of portfolios: what it tries, whom it chooses, and what it refuses."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nestor.errors import NestorError
from nestor.learn.accounting import Tally
from nestor.learn.algorithms import portfolio as page
from nestor.learn.algorithms.portfolio import (
    Group,
    Portfolio,
    PortfolioSettings,
    PortfolioState,
    Tried,
    choose,
    groups_of,
)
from nestor.learn.gradient.descent import policy_of
from nestor.learn.learners import check_setup
from nestor.learn.setup import Setup
from nestor.learn.start import StartSettings
from nestor.policy import bundle
from nestor.policy.names import NamedPolicy
from nestor.problem.problem import ProblemError
from nestor.problem.registry import find_problem
from nestor.problem.rollout import Request
from tests.learn.trying import portfolio, two_sided_world
from tests.learn.worlds import F64, World, beginner, pick_world, threshold_world


def ran(learner: Portfolio, steps: int) -> tuple[PortfolioState, list[dict[str, float]]]:
    """Return the state after so many updates, and what they reported."""
    state, said = learner.init(), []
    for _ in range(steps):
        state, metrics = learner.update(state, learner.batch(state))
        said.append(dict(metrics))
    return state, said


def with_problem(world: World, **options: Any) -> World:
    """Return ``world`` with other fields of its problem."""
    problem = replace(world.reference.problem, **options)
    reference = replace(world.reference, problem=problem)
    return replace(world, pool=replace(world.pool, problem=problem), reference=reference)  # type: ignore[type-var]


def parameters(learner: Portfolio, state: PortfolioState) -> list[list[float]]:
    """Return those of the policy's members."""
    return [member.flatten_parameters().tolist() for member in learner.policy(state).members()]


# --- who is chosen ------------------------------------------------------------------------------

RATIOS = np.array([[0.5, 1.0, 1.0], [1.0, 0.6, 1.0], [0.7, 0.7, 1.0], [2.0, 2.0, 0.9]])
"""Each helps somewhere; the last makes two groups worse, which a portfolio does not have to."""


@pytest.mark.parametrize(
    ("weights", "members", "chosen", "least"),
    [
        ((1, 1, 1), 1, [2], [0.7, 0.7, 1.0]),
        ((1, 1, 1), 2, [1, 0], [0.5, 0.6, 1.0]),  # 2, chosen first, is exchanged for 1
        ((1, 1, 1), 9, [2, 0, 1, 3], [0.5, 0.6, 0.9]),  # 1 and 3 add as much: the first of them
        ((1, 1, 9), 2, [3, 2], [0.7, 0.7, 0.9]),
        ((1, 0, 0), 9, [0], [0.5, 1.0, 1.0]),  # no other adds to what counts
    ],
)
def test_members_add_most_to_those_before_them(
    weights: Sequence[float], members: int, chosen: list[int], least: list[float]
) -> None:
    found, under = choose(RATIOS, np.array(weights, float), members)
    assert (found.tolist(), under.tolist()) == (chosen, least)


def test_where_nothing_helps_the_first_is_the_only_one() -> None:
    found, least = choose(np.array([[1.0, 1.2], [1.0, 1.0], [2.0, 1.0]]), np.ones(2), 3)
    assert (found.tolist(), least.tolist()) == ([0], [1.0, 1.0])
    found, least = choose(np.empty((0, 2)), np.ones(2), 3)
    assert (found.tolist(), least.tolist()) == ([], [1.0, 1.0])
    assert found.dtype == np.int64


# --- what counts --------------------------------------------------------------------------------


def test_groups_are_the_largest_parts_of_each_program() -> None:
    reference = pick_world(units=3).reference
    parts = ({"f": 60.0, "g": 30.0, "h": 10.0, "idle": 0.0}, {"k": 100.0}, {"q": 50.0})
    stocks = [replace(s, parts=p) for s, p in zip(reference.stocks, parts, strict=True)]
    reference = replace(reference, stocks=tuple(stocks))
    programs = {"a": ("m0.o", "m1.o"), "b": ("m1.o", "undecided.o")}
    found = {(g.unit, g.part): g.weight for g in groups_of(reference, programs, 0.8)}
    # Of the unit that both share: half of a, all of b; 0.8 of a is reached with f.
    share = {(1, "k"): (0.5 + 1.0) / 2, (0, "f"): 0.3 / 2}
    roots = {key: value**0.5 for key, value in share.items()}
    assert found == {
        key: pytest.approx(0.7 * share[key] + 0.3 * 0.9 * roots[key] / sum(roots.values()))
        for key in share
    }
    whole = groups_of(reference, programs, 1.0)
    assert {(g.unit, g.part) for g in whole} == {(1, "k"), (0, "f"), (0, "g"), (0, "h")}
    assert sum(g.weight for g in whole) == pytest.approx(1.0)
    assert sum(g.weight for g in groups_of(reference, {**programs, "c": ()}, 1.0)) == (
        pytest.approx(2 / 3)
    ), "in the mean over all programs"


def test_parts_without_a_score_are_no_groups() -> None:
    """Though rounding leaves a little of the whole to cover: 0.1 + 0.2 + 0.3 is above 0.6."""
    reference = pick_world(units=1).reference
    parts = {"a": 0.1, "b": 0.2, "c": 0.3, "idle": 0.0}
    assert sum(parts.values()) > sum(sorted(parts.values(), reverse=True))
    one = replace(reference, stocks=(replace(reference.stocks[0], parts=parts),))
    assert [group.part for group in groups_of(one, {"p": ("m0.o",)}, 1.0)] == ["c", "b", "a"]


def test_equal_parts_are_taken_in_the_order_of_their_names() -> None:
    reference = pick_world(units=1).reference
    (stock,) = reference.stocks
    for parts in ({"b": 1.0, "a": 1.0}, {"a": 1.0, "b": 1.0}):
        one = replace(reference, stocks=(replace(stock, parts=parts),))
        assert groups_of(one, {"p": ("m0.o",)}, 0.5) == [Group(0, "a", 0.5)]


# --- what is tried ------------------------------------------------------------------------------


def test_the_first_candidates_surround_the_start() -> None:
    world = two_sided_world()
    learner = portfolio(world, population=64)
    start = policy_of(learner.start, np.array([1.0, -2.0, 4.0]))
    still = replace(learner, start=start, settings=replace(learner.settings, width=0.0))
    state = still.init()
    found = still.candidates(state)
    scaled = found / start.flatten_parameters()
    assert (scaled == scaled[:, :1]).all(), "the whole start, scaled"
    assert scaled.min() >= 0 and scaled.max() < 1 and scaled[:, 0].std() > 0.2
    wide = replace(still, settings=replace(learner.settings, width=0.5)).candidates(state)
    moved = wide - found
    assert 0.35 < (moved == 0).mean() < 0.65, "half of the weights"
    assert moved[moved != 0].std() == pytest.approx(0.5, rel=0.2)
    one_step = still.candidates(replace(state, step=1))
    assert not np.array_equal(one_step, found)


def test_later_candidates_come_of_the_members() -> None:
    learner = portfolio(two_sided_world(), population=64, members=2, mutation=0.0)
    candidates = np.arange(12.0).reshape(4, 3)
    groups = (Group(0, "0", 1.0), Group(0, "1", 1.0), Group(0, "2", 1.0))
    learner = replace(learner, groups=groups)
    state = PortfolioState(2, candidates, RATIOS)  # members: 1 and 0
    found = learner.candidates(state)
    parents = candidates[[1, 0]]
    assert all((row == parents).any(axis=0).all() for row in found)
    whole = [(row == parents).all(axis=1).any() for row in found]
    assert 0.6 < np.mean(whole) < 0.98, "most are one parent's, some of both"
    mutated = replace(learner, settings=replace(learner.settings, mutation=0.1))
    moved = mutated.candidates(state) - found
    assert 0.5 < (moved == 0).mean() < 0.7, "two weights of five move"
    assert moved[moved != 0].std() == pytest.approx(0.1, rel=0.2)


def test_a_batch_compiles_each_unit_with_a_group_once() -> None:
    world = two_sided_world()
    numbers = {0: ("3", "7"), 2: ("3",), 3: ("0", "7", "29")}
    groups = tuple(Group(unit, n, 0.1) for unit, own in numbers.items() for n in own)
    learner = replace(portfolio(world), groups=groups)
    batch = learner.batch(learner.init())
    requests: list[Request] = world.pool.requests  # type: ignore[attr-defined]
    assert [request.unit.name for request in requests] == ["m0.o", "m2.o", "m3.o"]
    for request, own in zip(requests, numbers.values(), strict=True):
        assert set((request.overrides or "").split()) == {str(n) for n in range(30)} - set(own)
        assert len(request.policy.policy.members()) == 4  # type: ignore[union-attr]
    assert (batch.candidates == batch.candidates.astype(np.float32)).all(), "as they were tried"
    assert batch.ratios.shape == (4, len(groups))
    assert set(np.unique(batch.ratios)) <= {0.8, 1.0, 1.2} and (batch.ratios != 1).any()
    assert world.tally.rollouts == 3


def test_nothing_counts_as_more_than_twice_stock() -> None:
    """Neither a member that fails, nor one that is ten times as bad."""

    def changes(log: Any) -> F64:
        bad = np.where(np.arange(len(log)) % 2, np.inf, 1000.0)
        return np.where(log.answer == log.default, 0.0, bad)

    learner = portfolio(with_problem(two_sided_world(), changes=changes))
    batch = learner.batch(learner.init())
    odd = np.array([int(group.part) % 2 for group in learner.groups], dtype=bool)
    for own in (odd, ~odd):
        assert set(np.unique(batch.ratios[:, own])) == {1.0, 2.0}
    state, metrics = learner.update(learner.init(), batch)
    assert metrics["change_pct"] == 0
    assert metrics["best_candidate_pct"] > 0
    members = parameters(learner, state)
    assert members == [batch.candidates[0].tolist(), learner.start.flatten_parameters().tolist()]


def test_units_that_fail_say_nothing() -> None:
    world = with_problem(two_sided_world(), broken=("m1.o",))
    learner = portfolio(world)
    batch = learner.batch(learner.init())
    own = np.array([group.unit == 1 for group in learner.groups])
    assert (batch.ratios[:, own] == 1).all()
    assert (batch.ratios[:, ~own] != 1).any()
    _state, metrics = learner.update(learner.init(), batch)
    assert metrics["failed"] == batch.failed == world.tally.failures == 1
    assert world.tally.reasons == {"m1.o: broken": 1}


# --- what comes of it ---------------------------------------------------------------------------


def test_an_update_keeps_all_candidates_and_says_what_they_add() -> None:
    learner = portfolio(two_sided_world(), members=2)
    groups = (Group(0, "0", 0.5), Group(0, "1", 0.25), Group(0, "2", 0.25))
    learner = replace(learner, groups=groups)
    before = PortfolioState(4, np.arange(6.0).reshape(2, 3), RATIOS[:2])
    batch = Tried(np.arange(6.0, 12.0).reshape(2, 3), RATIOS[2:], 7)
    after, metrics = learner.update(before, batch)
    assert after.step == 5
    assert (after.candidates == np.arange(12.0).reshape(4, 3)).all()
    assert (after.ratios == RATIOS).all()
    # The first of the old ones saves half of the first group, a new one 0.3 of the second too.
    assert metrics == {
        "change_pct": pytest.approx(-100 * (0.5 * 0.5 + 0.25 * 0.4)),
        "best_candidate_pct": pytest.approx(100 * (0.5 * -0.3 + 0.25 * -0.3)),
        "members": 2,
        "new_members": 0,
        "failed": 7,
    }
    _, metrics = learner.update(learner.init(), replace(batch, failed=0))
    assert (metrics["members"], metrics["new_members"]) == (2, 2)


def test_two_policies_are_right_where_no_one_is() -> None:
    world = two_sided_world()
    learner = portfolio(world)
    state, said = ran(learner, 6)
    changes = [metrics["change_pct"] for metrics in said]
    assert changes == sorted(changes, reverse=True)
    assert changes[-1] == pytest.approx(-20 * learner.settings.cover)
    assert min(metrics["best_candidate_pct"] for metrics in said) > -4
    policy = learner.policy(state)
    (done,) = world.pool.run([Request(world.reference.stocks[0].unit, NamedPolicy.of(policy))])
    tried = world.reference.problem.tried(done.outcome)
    assert all(min(ratios) == 0.8 for ratios in tried.values())


def test_a_policy_has_two_members_at_least() -> None:
    """One alone would be used everywhere and not tried, so it could be worse than stock."""
    learner = portfolio(two_sided_world())
    start = policy_of(learner.start, np.array([1.0, -2.0, 4.0]))
    learner = replace(learner, start=start, groups=(Group(0, "0", 1.0),))
    own = start.flatten_parameters().tolist()
    assert parameters(learner, learner.init()) == [own, own]
    one, two = [1.0, 0.5, 0.25], [0.125, 2.0, 8.0]
    for ratios in ([[0.5], [0.5]], [[1.5], [1.25]]):
        state = PortfolioState(1, np.array([one, two]), np.array(ratios))
        assert parameters(learner, state) == [one, own]
    both = replace(learner, groups=(Group(0, "0", 1.0), Group(0, "1", 0.1)))
    state = PortfolioState(1, np.array([one, two]), np.array([[1.0, 0.9], [0.9, 1.0]]))
    assert parameters(both, state) == [two, one]


def test_the_seed_decides() -> None:
    learners = [replace(portfolio(two_sided_world()), seed=seed) for seed in (1, 1, 2)]
    states = [ran(learner, 3)[0] for learner in learners]
    ends = [bundle.to_bytes(one.policy(state)) for one, state in zip(learners, states, strict=True)]
    assert ends[0] == ends[1] != ends[2]


# --- what is refused ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"members": 1}, "has 2 to 64 members"),
        ({"members": 65}, "has 2 to 64 members"),
        ({"population": 1}, "2 to 64 candidates"),
        ({"population": 65}, "2 to 64 candidates"),
        ({"cover": 0.0}, "above 0 and at most 1"),
        ({"cover": 1.01}, "above 0 and at most 1"),
        ({"start": StartSettings(hidden=(8,))}, "leave out hidden layers"),
    ],
)
def test_settings_that_make_no_sense(settings: dict[str, Any], said: str) -> None:
    with pytest.raises(NestorError, match=said):
        PortfolioSettings(**settings)
    PortfolioSettings(members=64, population=2, cover=1.0)


def test_problems_without_trials_are_refused(tmp_path: Path) -> None:
    def setup(world: World, **options: Any) -> Setup:
        return Setup(world.pool, tmp_path, 0, Tally(), **options)

    with pytest.raises(NestorError, match="serves the rule pick and value"):
        check_setup("portfolio", setup(threshold_world()))
    with pytest.raises(NestorError, match=r"tries several .*that of toy does not") as no:
        check_setup("portfolio", setup(pick_world()))
    others = str(no.value).partition("take --learner ")[2]
    assert "ppo" in others and "portfolio" not in others and "distil" not in others
    check_setup("portfolio", setup(two_sided_world()))
    with pytest.raises(NestorError, match="leave out --estimate"):
        check_setup("portfolio", setup(two_sided_world(), estimate=tmp_path / "model"))
    toy = pick_world().reference
    with pytest.raises(ProblemError, match="no trials within a compile"):
        toy.problem.tried({})
    with pytest.raises(ProblemError, match="no trials within a compile"):
        toy.problem.only(toy.stocks[0].trajectory, ())
    names = ("inlining-size", "regalloc-eviction", "regalloc-priority")
    tries = {name for name in names if find_problem(name).tries}
    assert tries == {"regalloc-eviction", "regalloc-priority"}


def test_a_start_that_is_no_sum_is_refused(tmp_path: Path) -> None:
    world = two_sided_world()
    setup = Setup(world.pool, tmp_path, 0, Tally(), init=beginner(world, (8,)))
    with pytest.raises(NestorError, match="sums of features, and --init is none"):
        page.set_up(PortfolioSettings(), setup)


def test_a_portfolio_is_improved_from_its_members() -> None:
    """They are the first candidates, and those of the next step come of the chosen ones."""
    world = two_sided_world()
    plain = portfolio(world, population=6, mutation=0.0)
    members = tuple(policy_of(plain.start, np.array(row)) for row in ([1.0, 2, 3], [4.0, 5, 6]))
    learner = replace(plain, first=members)
    state = learner.init()
    found = learner.candidates(state)
    assert found[:2].tolist() == [[1, 2, 3], [4, 5, 6]]
    assert np.array_equal(found[2:], plain.candidates(state)[2:])
    ratios = np.ones((6, len(learner.groups)))
    ratios[1] = 0.5
    after = PortfolioState(1, found, ratios)
    assert learner.candidates(after).tolist() == [[4, 5, 6]] * 6
    few = replace(learner, settings=replace(learner.settings, population=2, members=2))
    assert few.candidates(state).tolist() == [[1, 2, 3], [4, 5, 6]]
