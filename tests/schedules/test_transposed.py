"""Products whose right operand is transposed are guessed in a way of their own."""

import pytest

from nestor.schedules.kernel.guess import guess
from nestor.schedules.language.library import packaged
from nestor.schedules.language.linking import decisions_of
from nestor.schedules.payload import operators as texts
from nestor.schedules.payload.loops import Loops, loops_of
from nestor.schedules.payload.reading import read_payload
from nestor.schedules.target import find_target
from nestor.schedules.tools import find_tools
from nestor.schedules.tune import policy as policies
from nestor.schedules.tune.searches import Problem, first_guess


def loops(text: str) -> Loops:
    return loops_of(read_payload(text, find_tools()))


@pytest.mark.parametrize(
    ("text", "transposed"),
    [
        (texts.attention_scores(2, 32, 32, 32), True),
        (texts.batch_matmul(2, 32, 32, 32), False),
        (texts.matmul(32, 32, 32), False),
        (texts.convolution(8, 16), False),
        (texts.softmax(8, 16), False),
    ],
    ids=["scores", "batch", "matmul", "convolution", "softmax"],
)
def test_maps_say_what_is_transposed_where_sizes_cannot(text: str, transposed: bool) -> None:
    assert loops(text).transposed == transposed


def test_columns_that_are_rows_are_few_and_stay_where_they_are() -> None:
    decisions, target = decisions_of(packaged(), "batch_matmul"), find_target("avx512")
    plain, transposed = (
        guess(decisions, loops(text), target)
        for text in (texts.batch_matmul(12, 128, 128, 64), texts.attention_scores(12, 128, 128, 64))
    )
    assert plain["reg_n"] == 64
    assert transposed["reg_n"] == 32
    assert transposed["packing"] == 0
    assert transposed["reg_m"] > plain["reg_m"]


def test_what_is_computed_stands_where_no_policy_knows() -> None:
    decisions, target = decisions_of(packaged(), "batch_matmul"), find_target("avx512")
    found = loops(texts.attention_scores(12, 128, 128, 64))
    problem = Problem(decisions, found, target, guess(decisions, found, target))
    assert first_guess(problem, policies.packaged(), seed=0) == problem.guess
