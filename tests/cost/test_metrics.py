"""Metrics by hand, their edges, and intervals that hold what they should."""

import numpy as np
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from nestor.cost.judge import metrics
from nestor.cost.judge.metrics import Quality


def test_the_errors_of_four_blocks() -> None:
    measured = np.array([1.0, 2.0, 4.0, 8.0])
    predicted = np.array([1.1, 1.0, 4.0, 10.0])
    found = metrics.quality(predicted, measured)
    assert found.n == 4
    assert found.mape == pytest.approx((10 + 50 + 0 + 25) / 4)
    assert found.median_ape == pytest.approx(17.5)
    # Of six pairs one is in the wrong order: (1.1, 1.0) for (1, 2).
    assert found.kendall == pytest.approx((5 - 1) / 6)
    assert found.spearman == pytest.approx(1 - 6 * 2 / (4 * 15))
    assert metrics.mape(predicted, measured) == found.mape
    assert metrics.median_ape(predicted, measured) == found.median_ape


def test_what_rows_do_not_tell_is_none() -> None:
    nothing = np.empty(0)
    assert metrics.quality(nothing, nothing) == Quality(0, None, None, None, None)
    one = np.ones(1)
    assert metrics.quality(one, one) == Quality(1, 0.0, 0.0, None, None)
    equal = metrics.quality(np.ones(3), np.array([1.0, 2.0, 3.0]))
    assert equal.kendall is None
    assert equal.spearman is None


@given(st.lists(st.floats(0.01, 1e6), min_size=2, max_size=30, unique=True), st.floats(0.1, 10))
@example([1e6, 999999.9999999999], 0.5)  # neighbours that the factor keeps apart
def test_ranks_do_not_see_a_factor_and_errors_do_not_see_units(
    values: list[float], factor: float
) -> None:
    measured = np.array(values)
    # Times 0.1, two neighbouring floats can round to one, and then their order is gone.
    assume(len(np.unique(measured * factor)) == len(values))
    found = metrics.quality(measured * factor, measured)
    assert found.spearman == pytest.approx(1.0)
    assert found.mape == pytest.approx(100 * abs(factor - 1), abs=1e-6)


def test_coverage_counts_ends_and_leaves_out_what_has_no_interval() -> None:
    low = np.array([1.0, 1.0, 3.0, np.nan])
    high = np.array([2.0, 2.0, 4.0, np.nan])
    found = metrics.coverage(low, high, np.array([1.0, 2.5, 4.0, 1.0]))
    assert found.share == pytest.approx(200 / 3)
    assert found.width == pytest.approx(100 * (1 / 1 + 1 / 2.5 + 1 / 4) / 3)
    assert metrics.coverage(low[3:], high[3:], np.ones(1)).share is None


def test_the_interval_of_a_mean_is_that_of_the_theory() -> None:
    values = np.random.default_rng(5).normal(10, 2, 4000)
    found = metrics.interval(values)
    error = 1.96 * 2 / np.sqrt(4000)
    assert found.low == pytest.approx(values.mean() - error, abs=error / 4)
    assert found.high == pytest.approx(values.mean() + error, abs=error / 4)
    assert metrics.interval(values) == found


def test_rows_of_a_group_are_drawn_together() -> None:
    """A hundred copies of each of forty values say no more than the forty."""
    few = np.random.default_rng(1).normal(0, 1, 40)
    alone = metrics.interval(few)
    copies = metrics.interval(np.repeat(few, 100), np.repeat(np.arange(40) * 7, 100))
    assert copies.high - copies.low == pytest.approx(alone.high - alone.low, rel=0.1)
    wrong = metrics.interval(np.repeat(few, 100))
    assert wrong.high - wrong.low < 0.2 * (alone.high - alone.low)


def test_a_paired_difference_is_surer_than_two_intervals() -> None:
    rng = np.random.default_rng(2)
    common = rng.exponential(5, 2000)
    better, worse = common + rng.normal(0, 0.1, 2000), common + 0.1 + rng.normal(0, 0.1, 2000)
    assert metrics.interval(worse - better).low > 0
    assert metrics.interval(better).high > metrics.interval(worse).low


def test_no_values_have_no_interval() -> None:
    assert np.isnan(metrics.interval(np.empty(0)).mean)
