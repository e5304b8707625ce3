"""The table of searches: changes against stock, worst first on the input that was not searched."""

from pathlib import Path
from typing import Any

import pytest

from benchmarks.inlining_speed import beside, interval, rows, with_kept


def found(program: str, unseen: float, searched: float) -> dict[str, Any]:
    def sides(total: float) -> dict[str, dict[str, float]]:
        return {"stock": {"J": 200.0, "text": 50.0}, "tuned": {"J": total, "text": 51.0}}

    return {
        "program": f"project/{program}",
        "overrides_count": 3,
        "sizes": {"measure": sides(unseen), "profile": sides(searched)},
        "curve": [{"compiles": 0.0}, {"compiles": 4.5}],
    }


def test_rows_are_worst_first_and_end_with_their_mean() -> None:
    bad, good, mean = rows([found("a", 180, 160), found("b", 202, 190)])
    assert bad == ["b", pytest.approx(1), pytest.approx(-5), pytest.approx(2), 3, 4.5]
    assert good[0] == "a"
    assert mean[:3] == ["mean of 2", pytest.approx(-4.5), pytest.approx(-12.5)]


def test_the_interval_holds_the_mean() -> None:
    low, high = interval([-10.0, -4.0, -1.0])
    assert low < -5 < high <= -1
    assert interval([-3.0]) == (-3.0, -3.0)


def test_searches_of_several_sessions_are_one_table(tmp_path: Path) -> None:
    kept = tmp_path / "kept.jsonl"
    assert len(with_kept(kept, [found("a", 180, 160), found("b", 202, 190)])) == 2
    every = with_kept(kept, [found("b", 198, 190)])
    assert [row[:2] for row in rows(every)[:2]] == [
        ["b", pytest.approx(-1)],
        ["a", pytest.approx(-10)],
    ]
    assert with_kept(kept, []) == every


def test_searches_of_some_programs_stand_beside_those_of_all() -> None:
    before = rows([found("a", 180, 160), found("b", 202, 190)])[:-1]
    now = rows([found("b", 190, 180)])[:-1]
    one, of_all = beside(before, now, "said")
    assert one == ["b", *map(pytest.approx, (1, -5, -10, 2))]
    assert of_all[0] == "mean of 2, said"
    assert of_all[1:] == [*map(pytest.approx, (-4.5, -7.5, -15, 2))]
