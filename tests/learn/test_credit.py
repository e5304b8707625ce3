"""Credit: the reward of each decision under every scheme."""

from dataclasses import replace

import numpy as np
import pytest

from nestor.learn.batch import Batch
from nestor.learn.credit import CreditSettings, advantages, at_the_end, rewards
from tests.learn.worlds import threshold_world

PROBLEM = threshold_world(1, 1).reference.problem

BATCH = Batch(
    x=np.zeros((4, 1)), question=np.arange(4), action=np.array([1, 0, 0, 1]),
    log_probability=np.zeros(4), episode=np.array([0, 0, 1, 1]),
    change=np.array([8.0, -16.0, 100.0, -100.0]), share=np.array([8.0, 0.0, 0.0, -80.0]),
    unit=np.array([2, 0]), total=np.array([90.0, 240.0]), stock=np.array([100.0, 200.0]),
)  # fmt: skip
AVERAGES = np.array([300.0, 7.0, 120.0])


@pytest.mark.parametrize(
    ("scheme", "most", "expected"),
    [
        ("share", None, [-0.5, 0, 0, 60 / 16]),
        ("share", 4.0, [-0.25, 0, 0, 0.25]),
        ("function", None, [-0.5, 1, -60 / 16, 60 / 16]),
        ("function", 0.0, [0, 0, 0, 0]),
        ("stock", None, [10, 10, -20, -20]),
        ("module", None, [25, 25, 20, 20]),
    ],
)
def test_rewards(scheme: str, most: float | None, expected: list[float]) -> None:
    settings = CreditSettings(scheme=scheme, most=most)  # type: ignore[arg-type]
    found, _averages = rewards(settings, BATCH, AVERAGES, PROBLEM)
    assert found == pytest.approx(expected)


def test_averages_move_where_a_unit_was_compiled() -> None:
    before = AVERAGES.copy()
    _, same = rewards(CreditSettings(scheme="stock"), BATCH, AVERAGES, PROBLEM)
    assert same is AVERAGES
    settings = CreditSettings(scheme="module", decay=0.75)
    _, moved = rewards(settings, BATCH, AVERAGES, PROBLEM)
    assert moved == pytest.approx([0.75 * 300 + 0.25 * 240, 7, 0.75 * 120 + 0.25 * 90])
    assert (before == AVERAGES).all()


@pytest.mark.parametrize("scheme", ["module", "stock", "share", "function"])
def test_rewards_of_a_unit_come_with_its_last_question(scheme: str) -> None:
    own = np.array([1.0, 2.0, 3.0, 4.0])
    of_units = scheme in ("module", "stock")
    found = at_the_end(own, BATCH, scheme)  # type: ignore[arg-type]
    assert found.tolist() == ([0, 2, 0, 4] if of_units else [1, 2, 3, 4])
    better = advantages(own, scheme)  # type: ignore[arg-type]
    assert better.tolist() == ([-1.5, -0.5, 0.5, 1.5] if of_units else [1, 2, 3, 4])
    assert len(advantages(np.zeros(0), scheme)) == 0  # type: ignore[arg-type]


def test_relative_change_of_an_empty_batch_is_none() -> None:
    empty = replace(BATCH, total=np.zeros(0), stock=np.zeros(0))
    assert empty.relative_change == 0
