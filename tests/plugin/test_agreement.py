"""The plugin and Python give the same logit and the same answer for every decision."""

import heapq
from collections.abc import Iterator
from typing import Any

import lightgbm
import numpy as np
import pytest

from nestor.compiler.plugin import Plugin
from nestor.corpus.model import Corpus, Module
from nestor.policy.names import DEFAULT, NamedPolicy
from nestor.policy.spec import Policy
from nestor.policy.trees import from_lightgbm
from nestor.problem.rollout import Request
from nestor.problem.trajectory import Trajectory
from nestor.problems.inlining_size import builtins
from nestor.problems.inlining_size.features.site import IN_CALLER
from nestor.problems.inlining_size.problem import PROBLEM
from nestor.rollout.local_pool import LocalPool, PoolSettings
from tests.plugin.support import random_network

ENOUGH = 50_000
MODULES = 6
CLEAR = 1e-5

pytestmark = pytest.mark.corpus


def _trajectories(pool: LocalPool, modules: list[Module], policy: NamedPolicy) -> list[Trajectory]:
    found = []
    for result in pool.run([Request(module, policy, log=True) for module in modules]):
        assert result.trajectory is not None, result.failure
        found.append(result.trajectory)
    return found


def _booster(x: np.ndarray[Any, Any], y: np.ndarray[Any, Any], trees: int) -> lightgbm.Booster:
    parameters = {
        "objective": "regression",
        "num_leaves": 31,
        "min_data_in_leaf": 5,
        "use_missing": False,
        "num_threads": 1,
        "verbose": -1,
        "seed": 1,
        "deterministic": True,
    }
    return lightgbm.train(parameters, lightgbm.Dataset(x, y), trees)


def _policies(seen: list[Trajectory]) -> Iterator[Policy]:
    # Policies at random would ask for trials in each caller, until no more are made.
    features = tuple(name for name in seen[0].features if name not in IN_CALLER)
    with_default = (*features, "inlining_default")
    mlgo = builtins.BUILTINS.resolve("mlgo2020")
    assert mlgo is not None
    yield mlgo
    # A threshold keeps most calls, and so asks about most.
    yield builtins.threshold(-10)
    yield random_network(features, 1, (64, 64))
    yield random_network(with_default, 2, (33, 17, 5))
    yield random_network(("cost_estimate", "callee_users"), 3, (128,))
    yield random_network(with_default, 4, (20, 20), answers="deviation")
    x = np.concatenate([t.rows(with_default) for t in seen])
    rng = np.random.default_rng(5)
    y = 2 * x[:, -1] - 1 + rng.normal(0, 0.5, len(x))
    yield from_lightgbm(_booster(x, y, 250), with_default, "decision", problem="inlining-size")
    yield from_lightgbm(
        _booster(x[:, :-1], rng.normal(-0.3, 1, len(x)), 60),
        features,
        "deviation",
        problem="inlining-size",
    )


def test_agreement(plugin: Plugin, tiny_corpus: Corpus) -> None:
    modules = heapq.nlargest(
        MODULES, tiny_corpus.modules, key=lambda m: tiny_corpus.bitcode(m).stat().st_size
    )
    with LocalPool(PROBLEM, tiny_corpus, plugin, PoolSettings(jobs=2)) as pool:
        seen = _trajectories(pool, modules, DEFAULT)
        total = clear = positive = 0
        for number, policy in enumerate(_policies(seen)):
            found = _trajectories(pool, modules, NamedPolicy.of(policy))
            for module, trajectory in zip(modules, found, strict=True):
                # A policy that deviates wildly is stopped, and the default decides the rest.
                own = len(trajectory)
                if policy.metadata.answers == "deviation":
                    own -= trajectory.facts["asked_after_growth_cap"]
                records = trajectory.decisions[:own]
                logits = policy.logits(trajectory.rows(policy.features)[:own])
                where = f"policy {number} on {module.name}"
                # docs/reference/formats.md promises the same bits, so signs of zero are the only
                # licence.
                assert (logits == records["logit"]).all(), where
                default = records["inlining_default"].astype(bool)
                answers = policy.answer(trajectory.rows(policy.features)[:own], default)
                counts = np.abs(logits) > CLEAR
                same = answers == records["answer"].astype(bool)
                assert same[counts].all(), where
                total, clear = total + len(records), clear + int(counts.sum())
                positive += int((logits > 0).sum())
    print(f"{total} decisions, {clear} with a logit above {CLEAR}, {positive} positive")
    assert clear >= ENOUGH
    assert 0.1 < positive / total < 0.9
