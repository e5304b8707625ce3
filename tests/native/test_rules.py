"""The rules in C++ against those in Python: the same actions, the same probabilities."""

import math
import subprocess
from pathlib import Path

import numpy as np
import pytest

from nestor.policy.draws import uniform
from nestor.policy.rule import PICK, RULES, Rule

CASES = 3000
HOSTILE = [math.nan, math.inf, -math.inf, 0.0, -0.0, 1e308, -1e308, 5e-324, 1.0, 1.0]
SPECIAL = [
    [math.nan], [math.inf], [-math.inf], [0.0], [700.0], [-745.0], [37.0], [1e-300],
    [math.nan] * 33, [-math.inf] * 33, [0.0] * 33, [math.nan, -math.inf, 3.0, 3.0],
    [math.inf, -math.inf, math.inf], [1e308, -1e308], [-1000.0, 0.0, 1000.0],
]  # fmt: skip


def questions(rule: Rule) -> list[list[float]]:
    """Random and special rows, hostile ones among them."""
    rng = np.random.default_rng(1)
    found = [rows if rule is PICK else rows[:1] for rows in SPECIAL]
    for case in range(CASES):
        rows = rng.choice([1, 2, 5, 33]) if rule is PICK else 1
        logits = rng.normal(0, rng.choice([0.1, 1, 10, 100]), rows)
        if case % 3 == 0:
            bad = rng.random(rows) < 0.3
            logits[bad] = rng.choice(HOSTILE, bad.sum())
        if case % 5 == 0:
            logits = np.round(logits)  # ties
        found.append(logits.tolist())
    return found


@pytest.mark.parametrize("temperature", [1.0, 0.3, 7.5])
@pytest.mark.parametrize("rule", RULES.values(), ids=lambda rule: rule.name)
def test_rules_agree(programs: Path, rule: Rule, temperature: float) -> None:
    rng = np.random.default_rng(2)
    asked = questions(rule)
    counts = np.array([len(rows) for rows in asked])
    logits = np.array([x for rows in asked for x in rows])
    question = np.repeat(np.arange(len(asked)), counts)
    if rule is PICK:
        actions = rng.integers(counts).astype(np.float64)
    else:
        actions = rng.integers(2, size=len(asked)).astype(np.float64)
    counters = rng.integers(2**64, size=len(asked), dtype=np.uint64)
    seed = 2**63 + 12345

    number = list(RULES).index(rule.name)
    parts = []
    for index, rows in enumerate(asked):
        whole = np.array([number, len(rows)], dtype=np.int64).tobytes()
        drawn = np.array([seed, counters[index]], dtype=np.uint64).tobytes()
        real = np.array([temperature, actions[index], *rows]).tobytes()
        parts.append(whole + drawn + real)
    done = subprocess.run(
        [programs / "rule-cases"], input=b"".join(parts), capture_output=True, check=True
    )
    u, greedy, sampled, log_probability, entropy = np.frombuffer(done.stdout).reshape(-1, 5).T

    uniforms = uniform(seed, counters)
    assert u.tobytes() == uniforms.tobytes()
    assert greedy.tolist() == rule.greedy(logits, question).tolist()
    assert sampled.tolist() == rule.sample(logits, question, uniforms, temperature).tolist()
    if rule is PICK:
        assert len(np.unique(sampled)) == 33
    kept = actions if rule.name == "value" else actions.astype(np.int64)
    np.testing.assert_allclose(
        log_probability,
        rule.log_probability(logits, question, kept, temperature),
        rtol=1e-12,
        atol=1e-12,
    )
    np.testing.assert_allclose(
        entropy, rule.entropy(logits, question, temperature), rtol=1e-12, atol=1e-12
    )
