"""The plugin and Python give the same logit and the same answer for every decision."""

import heapq
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import lightgbm
import numpy as np
import pytest
from nestor.compiler.trajectory_log import Trajectory
from nestor.rollout.rollout import Request, rollout

from nestor.compiler.plugin import Plugin
from nestor.compiler.process import Limits
from nestor.corpus.model import Corpus, Module
from nestor.policy import builtin, bundle
from nestor.policy.spec import Policy
from nestor.policy.trees import from_lightgbm
from tests.plugin.support import random_network

ENOUGH = 50_000
MODULES = 6
CLEAR = 1e-5

pytestmark = pytest.mark.corpus


def _trajectories(
    plugin: Plugin, corpus: Corpus, modules: list[Module], policy: Path | str
) -> list[Trajectory]:
    def compile_one(module: Module) -> Trajectory:
        request = Request(module, policy, log=True)
        result = rollout(request, corpus, plugin, Limits())
        assert result.trajectory is not None, result.failure
        return result.trajectory

    with ThreadPoolExecutor(2) as threads:
        return list(threads.map(compile_one, modules))


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
    features = seen[0].features
    with_default = (*features, "inlining_default")
    mlgo = builtin.resolve("mlgo2020")
    assert mlgo is not None
    yield mlgo
    # A threshold keeps most calls, and so asks about most.
    yield builtin.threshold(-10)
    yield random_network(features, 1, (64, 64))
    yield random_network(with_default, 2, (33, 17, 5))
    yield random_network(("cost_estimate", "callee_users"), 3, (128,))
    yield random_network(with_default, 4, (20, 20), answers="deviation")
    x = np.concatenate([t.matrix(with_default) for t in seen])
    rng = np.random.default_rng(5)
    y = 2 * x[:, -1] - 1 + rng.normal(0, 0.5, len(x))
    yield from_lightgbm(_booster(x, y, 250), with_default, "decision", problem="inlining-size")
    yield from_lightgbm(
        _booster(x[:, :-1], rng.normal(-0.3, 1, len(x)), 60),
        features,
        "deviation",
        problem="inlining-size",
    )


def test_agreement(plugin: Plugin, tiny_corpus: Corpus, tmp_path: Path) -> None:
    modules = heapq.nlargest(
        MODULES, tiny_corpus.modules, key=lambda m: tiny_corpus.bitcode(m).stat().st_size
    )
    seen = _trajectories(plugin, tiny_corpus, modules, "default")
    total = clear = positive = 0
    for number, policy in enumerate(_policies(seen)):
        path = tmp_path / f"{number}.safetensors"
        bundle.save(policy, path)
        for module, trajectory in zip(
            modules, _trajectories(plugin, tiny_corpus, modules, path), strict=True
        ):
            # A policy that deviates wildly is stopped, and the default decides the rest.
            own = len(trajectory)
            if policy.metadata.answers == "deviation":
                own -= trajectory.asked_after_growth_cap
            records = trajectory.records[:own]
            logits = policy.logits(trajectory.matrix(policy.features)[:own])
            where = f"policy {number} on {module.name}"
            # docs/reference/formats.md promises the same bits, so signs of zero are the only
            # licence.
            assert (logits == records["logit"]).all(), where
            default = records["inlining_default"].astype(bool)
            answers = policy.answer(trajectory.matrix(policy.features)[:own], default)
            counts = np.abs(logits) > CLEAR
            same = answers == records["answer"].astype(bool)
            assert same[counts].all(), where
            total, clear = total + len(records), clear + int(counts.sum())
            positive += int((logits > 0).sum())
    print(f"{total} decisions, {clear} with a logit above {CLEAR}, {positive} positive")
    assert clear >= ENOUGH
    assert 0.1 < positive / total < 0.9
