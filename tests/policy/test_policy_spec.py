from __future__ import annotations

import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

from nestor.errors import NestorError
from nestor.policy.network import MlpPolicy
from nestor.policy.spec import FeatureSpec, Policy, PolicyError, columns
from nestor.policy.trees import TreesPolicy


def test_columns_follow_the_policys_order(trees_policy: TreesPolicy) -> None:
    offered = [FeatureSpec(n, "int64_t", (1,)) for n in ("callee_users", "x", "cost_estimate")]
    assert columns(trees_policy, offered, "inlining_default") == (2, 0, None)
    with pytest.raises(PolicyError, match="does not offer: inlining_default;"):
        columns(trees_policy, offered, None)
    offered.append(FeatureSpec("inlining_default", "int64_t", ()))
    assert columns(trees_policy, offered, "inlining_default") == (2, 0, 3)
    assert columns(trees_policy, offered, None) == (2, 0, 3)


def test_all_missing_features_are_named(trees_policy: TreesPolicy) -> None:
    with pytest.raises(NestorError, match="cost_estimate, callee_users") as caught:
        columns(trees_policy, [], "inlining_default")
    assert isinstance(caught.value, PolicyError)
    assert "inlining_default" not in str(caught.value)


def test_a_feature_must_be_one_number(trees_policy: TreesPolicy) -> None:
    offered = [
        FeatureSpec("cost_estimate", "int64_t", (1,)),
        FeatureSpec("callee_users", "int64_t", (33,)),
    ]
    with pytest.raises(PolicyError, match="single numbers here: callee_users"):
        columns(trees_policy, offered, "inlining_default")


def test_a_policy_is_for_one_problem(trees_policy: TreesPolicy) -> None:
    trees_policy.check_problem("anything")
    text = r"The policy p\.safetensors is for anything, not for regalloc-eviction\."
    with pytest.raises(PolicyError, match=text):
        trees_policy.check_problem("regalloc-eviction", "p.safetensors")
    with pytest.raises(PolicyError, match=r"^The policy is for anything, not for x\.$"):
        trees_policy.check_problem("x")


def test_a_policy_picks_by_its_rule(quantile_policy: MlpPolicy) -> None:
    x = np.random.default_rng(0).integers(-50, 400, (7, 3))
    logits = quantile_policy.logits(x)
    assert quantile_policy.actions(x).tolist() == (logits > 0).tolist()
    picking = replace(quantile_policy, metadata=replace(quantile_policy.metadata, rule="pick"))
    question = np.array([0, 0, 0, 1, 2, 2, 2])
    expected = [logits[:3].argmax(), 0, logits[4:].argmax()]
    assert picking.actions(x, question).tolist() == expected
    for refused in (picking.answer, picking.probabilities):
        with pytest.raises(ValueError, match="rule is pick, not threshold"):
            refused(x)


def test_decisions(trees_policy: TreesPolicy) -> None:
    x = np.array([[5, 0, 0], [99, 0, 0], [99, 0, 1]])
    positive = np.array([True, False, False])
    default = np.array([True, True, False])
    assert (trees_policy.logits(x) > 0).tolist() == positive.tolist()
    # A deviation: the opposite of the default where the logit is positive.
    assert trees_policy.answer(x, default).tolist() == [False, True, False]
    with pytest.raises(ValueError, match="default"):
        trees_policy.answer(x)
    with pytest.raises(ValueError, match="defaults"):
        trees_policy.answer(x, default[:1])


def test_probabilities(trees_policy: TreesPolicy) -> None:
    x = np.array([[5, 0, 0], [99, 0, 0]])
    expected = 1 / (1 + np.exp(-trees_policy.logits(x) / 0.5))
    np.testing.assert_allclose(trees_policy.probabilities(x, 0.5), expected, rtol=1e-15)
    # So cold that exp overflows: the limits, and no warning.
    assert trees_policy.probabilities(x, 1e-5).tolist() == [1.0, 0.0]
    for temperature in (0.0, -1.0, float("nan"), float("inf")):
        with pytest.raises(ValueError, match="temperature"):
            trees_policy.probabilities(x, temperature)


def test_beyond_its_range_the_default_decides(
    log_policy: MlpPolicy, ranged_policy: MlpPolicy
) -> None:
    x = np.array([[0, 0, 0], [-10, 200, 1], [300, 1, 1], [301, 0, 0], [-11, 0, 1], [0, -1, 1]])
    known = [True, True, True, False, False, False]
    assert ranged_policy.in_range(x).tolist() == known
    assert log_policy.in_range(x).all()
    for ours, free in (
        (ranged_policy.logits(x), log_policy.logits(x)),
        (ranged_policy.fast_logits(x), log_policy.fast_logits(x)),
        (ranged_policy.probabilities(x), log_policy.probabilities(x)),
    ):
        assert free.all()
        np.testing.assert_array_equal(ours, np.where(known, free, 0))
    default = np.array([True, False] * 3)
    answers = ranged_policy.answer(x, default)
    assert answers[3:].tolist() == default[3:].tolist()
    assert answers[:3].tolist() == log_policy.answer(x, default)[:3].tolist()
    assert ranged_policy.logits(x[3:]).tolist() == [0.0] * 3
    # What is learned from it has the same range.
    moved = ranged_policy.with_parameters(ranged_policy.flatten_parameters() * 2)
    assert moved.in_range(x).tolist() == known


def test_inputs_are_checked(policy: Policy) -> None:
    assert policy.logits(np.empty((0, 3))).shape == (0,)
    assert policy.logits(np.zeros((2, 3), dtype=np.int64)).dtype == np.float64
    bad = [np.zeros(3), np.zeros((1, 4)), np.array([["a", "b", "c"]]), np.full((1, 3), np.nan)]
    for x in bad:
        with pytest.raises(ValueError, match="inputs"):
            policy.logits(x)


def test_integers_and_doubles_agree(policy: Policy) -> None:
    x = np.random.default_rng(0).integers(-(2**62), 2**62, (50, 3))
    assert policy.logits(x).tobytes() == policy.logits(x.astype(np.float64)).tobytes()


def test_using_a_policy_needs_no_training_stack() -> None:
    # NumPy's own import is the unit: it alone takes 0.07 s on one machine and 0.13 on another.
    code = (
        "import sys, time; start = time.process_time(); import numpy;"
        "unit = time.process_time() - start; import nestor.policy.bundle;"
        "spent = time.process_time() - start; import nestor.problems.inlining_size.builtins;"
        "print(spent / unit, [m for m in ('torch', 'lightgbm', 'scipy') if m in sys.modules])"
    )
    best = float("inf")
    for _ in range(5):
        run = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True
        )
        ratio, modules = run.stdout.split(maxsplit=1)
        assert modules.strip() == "[]"
        best = min(best, float(ratio))
        if best < 2:
            return
    pytest.fail(f"importing nestor.policy.bundle takes {best:.2f} times as long as NumPy alone")
