"""Changes in per cent, also of and to nothing, as numbers and as text."""

import math

import pytest

from nestor.change import change_pct, change_text, interval_text


@pytest.mark.parametrize(
    ("before", "after", "change", "text"),
    [
        (200, 190, -5.0, "-5.00 %"),
        (200, 200, 0.0, "+0.00 %"),
        (4, 0, -100.0, "-100.00 %"),
        (0, 0, 0.0, "+0.00 %"),
        (0, 3, math.inf, "–"),
    ],
)
def test_change(before: float, after: float, change: float, text: str) -> None:
    assert change_pct(before, after) == change
    assert change_text(change_pct(before, after)) == text


def test_text_of_what_does_not_exist_is_a_dash() -> None:
    assert change_text(math.nan) == "–"
    assert interval_text((-1.0, 2.5)) == "-1.00 … +2.50 %"
    for ends in ((-1.0, math.inf), (-math.inf, math.inf), (math.nan, 1.0)):
        assert interval_text(ends) == "–"
