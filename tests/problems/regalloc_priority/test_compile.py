"""Rollouts under policies that scale the priorities of live ranges."""

import dataclasses
from pathlib import Path

import numpy as np

from nestor.policy.names import NamedPolicy
from nestor.problem.check import check_problem
from nestor.problem.registry import find_problem
from nestor.rollout.local_pool import LocalPool
from tests.problems.allocations import columns, compiled, linear, log_of

PROBLEM = find_problem("regalloc-priority")
RANK = (1 << 24) - 1


def test_problem_is_sound(priority_pool: LocalPool) -> None:
    check_problem(PROBLEM, priority_pool.place, priority_pool.corpus.modules)


def test_default_is_stock(priority_pool: LocalPool) -> None:
    stock, default = compiled(priority_pool, None), compiled(priority_pool, "default")
    log = log_of(default)
    assert stock.object == default.object
    assert columns(priority_pool, stock) == columns(priority_pool, default)
    assert len(log) > 100
    assert (log.answer == 0).all() and (log.default == 0).all()
    assert (log.decisions["priority"] == log.decisions["priority_default"]).all()
    assert (log.decisions["rank"] == log.decisions["priority_default"] & RANK).all()


def test_an_answer_scales_the_rank(priority_pool: LocalPool) -> None:
    twice = NamedPolicy.of(linear(priority_pool, {"weight": 0.0}, bias=1.0))
    log = log_of(compiled(priority_pool, twice))
    stock, given = (log.decisions[n] for n in ("priority_default", "priority"))
    assert (log.answer == 1).all()
    assert (given >> 24 == stock >> 24).all()
    assert (given & RANK == np.minimum(2 * (stock & RANK), RANK)).all()


def test_policies_change_the_object(priority_pool: LocalPool) -> None:
    stock = compiled(priority_pool, None)
    for name in ("heaviest", "smallest"):
        other = compiled(priority_pool, name)
        assert other.object != stock.object
        assert columns(priority_pool, other)["cost"] != columns(priority_pool, stock)["cost"]


def test_beyond_its_range_the_default_decides(priority_pool: LocalPool) -> None:
    policy = linear(priority_pool, {"rank": 1.0})
    rank = log_of(compiled(priority_pool, "default")).rows(["rank"])[:, 0]
    middle = float(np.median(rank))
    bounded = dataclasses.replace(policy, range=np.array([[0.0, middle]]))
    log = log_of(compiled(priority_pool, NamedPolicy.of(bounded)))
    inside = log.rows(["rank"])[:, 0] <= middle
    assert inside.any() and not inside.all()
    assert (log.by_policy == inside).all()
    assert (log.answer[~inside] == 0).all() and (log.answer[inside] != 0).any()


def test_sampling_repeats_by_its_seed(priority_pool: LocalPool) -> None:
    logs = [log_of(compiled(priority_pool, "smallest", seed=seed)) for seed in (1, 1, 2)]
    assert logs[0].answer.tolist() == logs[1].answer.tolist()
    assert logs[0].answer.tolist() != logs[2].answer.tolist()
    assert (logs[0].decisions["log_probability"] != 0).all()


def test_ways_are_the_plugins(priority_pool: LocalPool, tmp_path: Path) -> None:
    default = PROBLEM.ways(priority_pool.plugin, PROBLEM.policy("default"), tmp_path)
    assert [way.name for way in default] == ["stock", "idle", "default", "logged"]
    smallest = PROBLEM.ways(priority_pool.plugin, PROBLEM.policy("smallest"), tmp_path)
    assert [way.name for way in smallest] == ["release", "logged"]
