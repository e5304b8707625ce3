"""An answer that is known before all features are read is the one that all features give."""

import numpy as np
import pytest

from nestor.policy.layers import Layer
from nestor.policy.network import LogNormalisation, build
from nestor.policy.spec import Policy
from nestor.rollout.ready import stored_policy
from tests.plugin.support import CXX_SOURCE, SOURCE, Workbench, random_forest
from tests.plugin.test_call_frequencies import LOOPS
from tests.plugin.test_site_features import FACTS, MANDATORY, PROFILED

PROBLEMS = ("inlining-size", "inlining-speed")
SOURCES = {"unit.c": (SOURCE, LOOPS, FACTS, MANDATORY), "unit.cpp": (CXX_SOURCE,)}
FEATURES = (
    "inlining_default", "call_arguments", "callee_instructions", "caller_basic_block_count",
    "cost_estimate", "call_frequency", "callee_executed",
)  # fmt: skip
"""Of each price, the dearest last."""


def check(bench: Workbench, policy: Policy | str, level: str) -> int:
    """Compare compiles with and without a log, which wants all; return the answers that deviate."""
    path = stored_policy(policy, PROBLEMS).place if isinstance(policy, str) else bench.save(policy)
    deviations = 0
    for name, sources in SOURCES.items():
        for source in sources:
            words = {"flags": [level], "name": name}
            lean = bench.compile(source, path, **words)  # type: ignore[arg-type]
            for options in ((), (f"-nestor-log-for={path}",)):
                full = bench.compile(source, path, *options, log=True, **words)  # type: ignore[arg-type]
                assert full.bytes == lean.bytes, (name, options)
            records = full.trajectory.decisions
            deviations += int((records["answer"] != records["inlining_default"]).sum())
    return deviations


@pytest.mark.parametrize(
    ("name", "level"), [("shipped", "-Oz"), ("distilled", "-Oz"), ("shipped-speed", "-O2")]
)
def test_packaged_policies(bench: Workbench, name: str, level: str) -> None:
    check(bench, name, level)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("answers", ["decision", "deviation"])
def test_networks_and_trees(bench: Workbench, seed: int, answers: str) -> None:
    rng = np.random.default_rng(seed)
    count = len(FEATURES)
    network = build(
        FEATURES,
        answers,
        LogNormalisation(np.full(count, 1.5), np.full(count, 0.5)),
        (
            Layer(rng.normal(size=(6, count)).astype(np.float32), np.zeros(6, np.float32)),
            Layer(rng.normal(size=(1, 6)).astype(np.float32), np.zeros(1, np.float32)),
        ),
        problem="inlining-size",
    )
    seen = bench.compile(SOURCE, "default", log=True).trajectory.rows(FEATURES)
    forest = random_forest(FEATURES, seen, seed, answers)
    assert check(bench, network, "-Oz") + check(bench, forest, "-Oz") > 0


def test_with_a_profile(bench: Workbench) -> None:
    path = stored_policy("shipped-speed", PROBLEMS).place
    full = bench.compile(PROFILED, path, log=True, name="unit.ll", flags=["-O2"])
    assert bench.compile(PROFILED, path, name="unit.ll", flags=["-O2"]).bytes == full.bytes
