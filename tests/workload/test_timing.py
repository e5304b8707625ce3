"""Times are judged by what stock differs from itself by."""

import pytest

from nestor.corpus.model import Corpus
from nestor.workload.timing import NULL, STOCK, Timing, TimingError, time_ab
from tests.workload.conftest import BuildProgram


def test_a_build_without_optimisation_is_slower_and_stock_is_not(
    workloads: Corpus, built: BuildProgram
) -> None:
    program = workloads.programs[0]
    builds = {STOCK: built(program), "slow": built(program, "-O0"), "same": built(program)}
    timing = time_ab(workloads, program, builds, ("60000",), rounds=7, clock="cpu")
    assert set(timing.seconds) == {STOCK, NULL, "slow", "same"}
    assert {len(times) for times in timing.seconds.values()} == {7}
    assert timing.is_resolved("slow")
    slow, same = timing.effect("slow"), timing.effect("same")
    assert slow.of_medians > 20
    assert slow.of_minima > 20
    assert slow.low <= slow.of_medians <= slow.high
    assert abs(same.of_minima) < slow.of_minima


def test_an_effect_within_the_null_is_not_resolved() -> None:
    stock = tuple(1.0 + 0.01 * (i % 5) for i in range(20))
    null = tuple(1.02 + 0.01 * (i % 5) for i in range(20))
    seconds = {STOCK: stock, NULL: null, "small": tuple(0.985 * s for s in stock)}
    seconds["large"] = tuple(0.9 * s for s in stock)
    timing = Timing("p", "wall", seconds)
    assert timing.effect("small").high < 0  # by itself it would count as faster
    assert not timing.is_resolved("small")
    assert timing.is_resolved("large")
    assert timing.effect("large").of_medians == pytest.approx(-10.0)
    assert timing.effect("large").of_minima == pytest.approx(-10.0)


def test_a_run_that_fails_is_an_error(workloads: Corpus, built: BuildProgram) -> None:
    program = workloads.programs[0]
    with pytest.raises(TimingError, match="failed: "):
        time_ab(workloads, program, {STOCK: built(program)}, ("0",), rounds=1)
    with pytest.raises(TimingError, match="no build 'stock'"):
        time_ab(workloads, program, {"other": built(program)}, ("9",), rounds=1)
