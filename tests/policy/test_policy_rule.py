"""The rules against definitions written out for one question at a time."""

from __future__ import annotations

import itertools
import math
import statistics
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from nestor.errors import NestorError
from nestor.policy.draws import normal_quantile, uniform
from nestor.policy.questions import first_rows
from nestor.policy.rule import PICK, RULES, THRESHOLD, VALUE, Rule, rule_named

NAN, INF = math.nan, math.inf

USUAL = st.floats(-15, 15)
#: With ties, and with what a broken network may give.
HOSTILE = st.sampled_from([NAN, INF, -INF, 0.0, 1.0, 1e308, -1e308]) | st.floats(-15, 15)
TEMPERATURE = st.sampled_from([0.25, 1.0, 3.0])


def batch(questions: list[list[float]]) -> tuple[Any, Any]:
    """The logits and question numbers of lists of rows."""
    logits = np.array(list(itertools.chain.from_iterable(questions)), dtype=np.float64)
    return logits, np.repeat(np.arange(len(questions)), [len(rows) for rows in questions])


def lists(logit: Any, rows: int = 5) -> Any:
    return st.lists(st.lists(logit, min_size=1, max_size=rows), max_size=6)


def chances(rows: list[float], temperature: float) -> list[float]:
    """The probability of each row under `pick`."""
    scores = [-INF if math.isnan(x) else min(x, 1.7976931348623157e308) for x in rows]
    if max(scores) == -INF:
        return [1.0] + [0.0] * (len(rows) - 1)
    weights = [math.exp((x - max(scores)) / temperature) for x in scores]
    return [w / sum(weights) for w in weights]


def test_names() -> None:
    assert list(RULES) == ["threshold", "pick", "value"]
    assert rule_named("pick") is PICK
    with pytest.raises(NestorError, match="no rule 'choose'; the rules are threshold, pick, value"):
        rule_named("choose")


@given(lists(HOSTILE))
def test_pick_takes_the_first_greatest(questions: list[list[float]]) -> None:
    expected = []
    for rows in questions:
        scores = [-INF if math.isnan(x) else min(x, 1.7976931348623157e308) for x in rows]
        expected.append(scores.index(max(scores)))
    actions = PICK.greedy(*batch(questions))
    assert actions.dtype == np.int64
    assert actions.tolist() == expected


@given(lists(HOSTILE), TEMPERATURE)
def test_pick_is_a_softmax(questions: list[list[float]], temperature: float) -> None:
    logits, question = batch(questions)
    expected = [chances(rows, temperature) for rows in questions]
    entropies = [-sum(p * math.log(p) for p in each if p > 0) for each in expected]
    np.testing.assert_allclose(PICK.entropy(logits, question, temperature), entropies, atol=1e-12)
    whole = np.zeros(len(questions))
    for row in range(5):
        actions = np.array([min(row, len(rows) - 1) for rows in questions], dtype=np.int64)
        found = np.exp(PICK.log_probability(logits, question, actions, temperature))
        p = [each[action] for each, action in zip(expected, actions, strict=True)]
        np.testing.assert_allclose(found, p, rtol=1e-11, atol=1e-300)
        whole += np.where([row < len(rows) for rows in questions], found, 0)
    np.testing.assert_allclose(whole, 1, rtol=1e-12)


@given(lists(HOSTILE), TEMPERATURE, st.integers(0, 2**53 - 1))
def test_pick_samples_where_the_running_sum_passes(
    questions: list[list[float]], temperature: float, bits: int
) -> None:
    logits, question = batch(questions)
    u = bits * 2.0**-53
    actions = PICK.sample(logits, question, np.full(len(questions), u), temperature)
    assert actions.dtype == np.int64
    for rows, action in zip(questions, actions.tolist(), strict=True):
        each = chances(rows, temperature)
        assert each[action] > 0
        assert sum(each[:action]) <= u + 1e-12
        assert u - 1e-12 <= sum(each[: action + 1])


@given(st.lists(HOSTILE, max_size=8), TEMPERATURE)
def test_threshold_is_a_coin(rows: list[float], temperature: float) -> None:
    logits, question = np.array(rows), np.arange(len(rows))
    greedy = THRESHOLD.greedy(logits, question)
    assert greedy.dtype == np.int64
    assert greedy.tolist() == [int(x > 0) for x in rows]
    positive = [
        0.0 if math.isnan(x) else 1 / (1 + math.exp(min(700.0, -x / temperature))) for x in rows
    ]
    found = THRESHOLD.probability(logits, temperature)
    np.testing.assert_allclose(found, positive, rtol=1e-14, atol=1e-300)
    both = [
        np.exp(THRESHOLD.log_probability(logits, question, np.full(len(rows), a), temperature))
        for a in (0, 1)
    ]
    np.testing.assert_allclose(both[1], positive, rtol=1e-13, atol=1e-300)
    np.testing.assert_allclose(both[0] + both[1], 1, rtol=1e-13)
    entropies = [-sum(q * math.log(q) for q in (p, 1 - p) if q > 0) for p in found.tolist()]
    np.testing.assert_allclose(
        THRESHOLD.entropy(logits, question, temperature), entropies, atol=1e-12
    )
    # Action 1 for uniform numbers below its probability, and for no other.
    for u in (0.0, 0.5, 1 - 2.0**-53):
        drawn = THRESHOLD.sample(logits, question, np.full(len(rows), u), temperature)
        assert drawn.tolist() == [int(u < p) for p in found]


@given(st.lists(HOSTILE, max_size=8), TEMPERATURE)
def test_value_is_normal(rows: list[float], temperature: float) -> None:
    logits, question = np.array(rows), np.arange(len(rows))
    centre = [x if math.isfinite(x) else 0.0 for x in rows]
    greedy = VALUE.greedy(logits, question)
    assert greedy.dtype == np.float64
    assert greedy.tolist() == centre
    for u in (0.025, 0.5, 0.9):
        drawn = VALUE.sample(logits, question, np.full(len(rows), u), temperature)
        z = statistics.NormalDist(0, temperature).inv_cdf(u)
        np.testing.assert_allclose(drawn, np.array(centre) + z, rtol=1e-13, atol=1e-13)
    actions = greedy + 1.5
    density = math.log(statistics.NormalDist(0, temperature).pdf(1.5))
    usual = np.abs(greedy) < 1e6  # 1.5 is lost beside a larger one
    found = VALUE.log_probability(logits, question, actions, temperature)
    np.testing.assert_allclose(found[usual], density, rtol=1e-7)
    entropy = 0.5 * math.log(2 * math.pi * math.e * temperature**2)
    np.testing.assert_allclose(VALUE.entropy(logits, question, temperature), entropy, rtol=1e-12)


@pytest.mark.parametrize("rule", RULES.values(), ids=lambda rule: rule.name)
def test_samples_are_as_frequent_as_their_probability(rule: Rule) -> None:
    draws = 40_000
    uniforms = uniform(7, np.arange(draws, dtype=np.uint64))
    rows = [0.5, -1.0, 1.25, 0.0] if rule is PICK else [0.75]
    logits, question = batch([rows] * draws)
    actions = rule.sample(logits, question, uniforms, 0.5)
    logs = rule.log_probability(logits, question, actions, 0.5)
    # The mean of -log p is the entropy; its deviation at most about 1 nat.
    assert abs(-logs.mean() - rule.entropy(*batch([rows]), 0.5)[0]) < 4 / math.sqrt(draws)
    if rule is VALUE:
        assert abs(actions.mean() - 0.75) < 4 * 0.5 / math.sqrt(draws)
        assert abs(actions.std() - 0.5) < 0.01
        return
    for action, logs_of in ((a, logs[actions == a]) for a in np.unique(actions)):
        p = math.exp(logs_of[0])
        spread = math.sqrt(p * (1 - p) / draws)
        assert abs((actions == action).mean() - p) < 4 * spread


def slopes(function: Callable[[Any], Any], logits: Any) -> Any:
    """The derivative of the sum of `function` by each logit, by differences."""
    step = 1e-5 * np.eye(len(logits))
    return [(function(logits + s).sum() - function(logits - s).sum()) / 2e-5 for s in step]


@pytest.mark.parametrize("rule", RULES.values(), ids=lambda rule: rule.name)
@given(lists(USUAL))
def test_torch_agrees_and_has_the_right_gradient(rule: Rule, questions: list[list[float]]) -> None:
    if not questions:
        return
    logits, question = batch(questions if rule is PICK else [rows[:1] for rows in questions])
    uniforms = np.random.default_rng(3).random(len(questions))
    actions = rule.sample(logits, question, uniforms, 1.0)
    numbers, acted = torch.from_numpy(question), torch.from_numpy(actions)

    def check(found: torch.Tensor, expected: Callable[[Any], Any]) -> None:
        # The tail of a coin: 1 - p has 16 digits of 1, not of p.
        np.testing.assert_allclose(found.detach(), expected(logits), rtol=1e-9, atol=1e-9)
        total: Any = found.sum() + 0 * tensor.sum()
        (gradient,) = torch.autograd.grad(total, tensor)
        np.testing.assert_allclose(gradient, slopes(expected, logits), atol=1e-4)

    tensor = torch.tensor(logits, requires_grad=True)
    check(
        rule.torch_log_probability(tensor, numbers, acted),
        lambda x: rule.log_probability(x, question, actions),
    )
    check(rule.torch_entropy(tensor, numbers), lambda x: rule.entropy(x, question))


def test_torch_survives_what_a_broken_network_gives() -> None:
    questions = [[NAN, 1.0, -INF], [-INF, NAN], [INF, 2.0, INF], [3.0]]
    logits, question = batch(questions)
    tensor = torch.tensor(logits, requires_grad=True)
    actions = np.array([1, 0, 2, 0])
    found = PICK.torch_log_probability(
        tensor, torch.from_numpy(question), torch.from_numpy(actions)
    )
    np.testing.assert_allclose(
        found.detach().numpy(), PICK.log_probability(logits, question, actions), atol=1e-12
    )
    entropy = PICK.torch_entropy(tensor, torch.from_numpy(question))
    np.testing.assert_allclose(entropy.detach().numpy(), PICK.entropy(logits, question), atol=1e-12)
    (found.sum() + entropy.sum()).backward()  # type: ignore[no-untyped-call]
    assert tensor.grad is not None
    assert tensor.grad.isfinite().all()


def test_torch_coins_have_the_arithmetic_that_policies_were_trained_with() -> None:
    logits = torch.linspace(-30, 30, 601)
    positive = torch.arange(601) % 2 == 0
    question = torch.arange(601)
    log = torch.nn.functional.logsigmoid(torch.where(positive, logits, -logits))
    assert torch.equal(THRESHOLD.torch_log_probability(logits, question, positive.long()), log)
    entropy = torch.nn.functional.softplus(logits) - logits * torch.sigmoid(logits)
    assert torch.equal(THRESHOLD.torch_entropy(logits, question), entropy)


def test_batches_are_checked() -> None:
    assert first_rows(np.array([0, 0, 1, 2, 2, 2])).tolist() == [0, 2, 3]
    assert first_rows(np.array([], dtype=np.int64)).tolist() == []
    for wrong in ([1, 2], [0, 2], [0, 1, 0], [-1, 0]):
        with pytest.raises(ValueError, match="numbered from 0"):
            first_rows(np.array(wrong))
    logits, two = np.zeros(2), np.array([0, 0])
    for single in (THRESHOLD, VALUE):
        with pytest.raises(ValueError, match="exactly one row"):
            single.greedy(logits, two)
    for rule in RULES.values():
        question = np.arange(2)
        with pytest.raises(ValueError, match="row"):
            rule.greedy(np.zeros(3), question)
        for temperature in (0.0, -1.0, NAN, INF):
            with pytest.raises(ValueError, match="temperature"):
                rule.sample(logits, question, np.zeros(2), temperature)
            with pytest.raises(ValueError, match="temperature"):
                rule.entropy(logits, question, temperature)
        for uniforms in (np.array([0.0, 1.0]), np.array([-0.1, 0.0]), np.array([NAN, 0.0])):
            with pytest.raises(ValueError, match="below 1"):
                rule.sample(logits, question, uniforms, 1.0)
        with pytest.raises(ValueError, match="as many uniform numbers"):
            rule.sample(logits, question, np.zeros(1), 1.0)
    for action in (-1, 2):
        with pytest.raises(ValueError, match="number of a row"):
            PICK.log_probability(logits, two, np.array([action]))


def test_uniform_numbers() -> None:
    # The vectors of tests/native/DrawsTest.cpp.
    assert float(uniform(0, 0)) == float.fromhex("0x1.4e0dba5e9a32fp-1")
    assert float(uniform(1, 0)) == float.fromhex("0x1.7906ac21d0e58p-2")
    assert float(uniform(0, 1)) == float.fromhex("0x1.169fb51912560p-5")
    assert float(uniform(42, 0x123456789ABCDEF)) == float.fromhex("0x1.fa85a56018362p-1")
    assert float(uniform(-1, -1)) == float.fromhex("0x1.8c2450f99e91ep-2")
    assert float(uniform(0, 5)) == float(uniform(2**64, 2**64 + 5))
    counters = np.arange(100_000, dtype=np.uint64)
    u = uniform(3, counters)
    assert u.shape == (100_000,)
    assert u.min() >= 0
    assert u.max() < 1
    assert abs(u.mean() - 0.5) < 0.005
    assert len(np.unique(u)) == len(u)
    assert float(uniform(3, 17)) == u[17]
    assert float(uniform(3, -1)) == float(uniform(3, np.array(-1)))
    assert not (uniform(4, counters) == u).any()
    assert uniform(1, counters.reshape(100, -1)).shape == (100, 1000)


@settings(max_examples=300)
@given(st.floats(2.0**-54, 1, exclude_max=True))
def test_quantiles_of_the_normal_distribution(p: float) -> None:
    expected = statistics.NormalDist().inv_cdf(p)
    assert float(normal_quantile(np.array([p]))[0]) == pytest.approx(expected, rel=1e-13, abs=1e-15)


def test_quantiles_are_finite() -> None:
    ends = normal_quantile(np.array([0.0, 2.0**-54, 0.5, 1 - 2.0**-53]))
    assert np.isfinite(ends).all()
    assert ends[0] == ends[1] < -8
    assert ends[2] == 0
    assert normal_quantile(np.empty(0)).shape == (0,)
