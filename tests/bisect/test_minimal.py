"""The search for a minimal failing set, on tests whose causes are set before."""

import random
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nestor.bisect.minimal import minimal_failing


class Counted:
    """Fails if all of some numbers are there; counts its runs."""

    def __init__(self, *causes: set[int]) -> None:
        self.causes = causes
        self.runs = 0

    def __call__(self, chosen: Sequence[int]) -> bool:
        self.runs += 1
        assert list(chosen) == sorted(chosen)
        return any(cause <= set(chosen) for cause in self.causes)


@given(st.integers(1, 60), st.sets(st.integers(0, 59), min_size=1, max_size=6))
def test_all_that_is_needed_is_found(size: int, numbers: set[int]) -> None:
    cause = {number % size for number in numbers}
    assert minimal_failing(range(size), Counted(cause)) == sorted(cause)


@given(st.lists(st.sets(st.integers(0, 30), min_size=1, max_size=4), min_size=1, max_size=4))
def test_one_of_several_causes_is_found_and_nothing_else(causes: list[set[int]]) -> None:
    found = set(minimal_failing(range(31), Counted(*causes)))
    assert found in causes
    assert not any(other < found for other in causes)


@pytest.mark.parametrize(("culprits", "most"), [(1, 13), (3, 55)])
def test_few_tests_are_needed(culprits: int, most: int) -> None:
    draw = random.Random(1)
    for _ in range(50):
        cause = set(draw.sample(range(1000), culprits))
        test = Counted(cause)
        assert minimal_failing(range(1000), test) == sorted(cause)
        assert test.runs <= most


def test_a_single_element_needs_no_test() -> None:
    test = Counted({0})
    assert minimal_failing([0], test) == [0]
    assert test.runs == 0


def test_what_fails_now_and_passes_with_more_is_still_found_failing() -> None:
    def fails(chosen: Sequence[int]) -> bool:
        return len(chosen) == 10 or (3 in chosen and 7 not in chosen)

    assert fails(minimal_failing(range(10), fails))
