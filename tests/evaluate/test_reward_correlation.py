"""How the benchmark judges a reward by measured changes."""

import json
import math
import sys
from pathlib import Path
from typing import Any

import pytest

from benchmarks import reward_correlation as judged
from nestor.errors import NestorError


def row(program: str, variant: str, j: float, *, profile: bool = True, **more: Any) -> Any:
    return {"program": program, "variant": variant, "profile": profile, "j": j, **more}


def table(*, wrong: bool = False) -> list[Any]:
    """Return three programs of different size with five builds, whose reward follows J, or not."""
    rows = []
    for number, size in enumerate((1e6, 5e7, 3e9)):
        program = f"p{number}"
        rows.append(row(program, "stock", size, static=size / 7, cycles=None))
        for step, base in enumerate((-0.02, -0.003, 0.001, 0.004, 0.03)):
            change = base * (1 + number / 10)  # no two builds tie
            follows = -change if wrong else change
            rows.append(
                row(program, f"v{step}", size * (1 + change), static=size / 7 * (1 + follows / 3))
            )
    return rows


def test_a_reward_that_follows_is_perfect_and_its_opposite_is_not() -> None:
    for wrong, rho, right in ((False, 1.0, 100.0), (True, -1.0, 0.0)):
        programs, left_out = judged.changes(table(wrong=wrong), "static", profile=True)
        found = judged.agreement(programs, left_out, resamples=50)
        assert (found.programs, found.builds, found.left_out) == (3, 15, 0)
        assert found.spearman.value == pytest.approx(rho)
        assert found.spearman.low <= found.spearman.value + 1e-9
        assert found.spearman_worst == pytest.approx(rho)
        assert found.signs == 12  # a change of 0.1 % is too small for its sign to count
        assert found.right.value == right


def test_one_bad_program_widens_the_interval() -> None:
    rows = table()
    bad = [r | {"program": "bad"} for r in table(wrong=True) if r["program"] == "p0"]
    programs, _ = judged.changes([*rows, *bad], "static", profile=True)
    found = judged.agreement(programs, resamples=400)
    assert found.right.value == 75.0
    assert found.right.low <= 50.0
    assert found.right.high == 100.0
    assert found.worst_program == "bad"
    assert found == judged.agreement(programs, resamples=400)  # the seed decides


def test_a_reward_without_a_number_is_left_out_and_one_that_stays_is_wrong() -> None:
    programs, left_out = judged.changes(table(), "cycles", profile=True)
    assert (programs, left_out) == ([], 15)
    assert math.isnan(judged.agreement(programs, left_out).spearman.value)
    rows = [row("p", "stock", 100, static=5.0), row("p", "v", 90, static=5.0)]
    programs, _ = judged.changes(rows, "static", profile=True)
    assert judged.agreement(programs, resamples=10).right.value == 0.0


def test_rows_are_checked(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text('{"program": "p"}\n')
    with pytest.raises(NestorError, match=r"line 1 is no row"):
        judged.read_rows([path])
    line = json.dumps(row("p", "v", 3))
    path.write_text(f"{line}\n\n{line}\n")
    with pytest.raises(NestorError, match=r"line 3 repeats"):
        judged.read_rows([path])
    with pytest.raises(NestorError, match=r"'p' has no row with the variant 'stock'"):
        judged.changes([row("p", "v", 3)], "static", profile=True)
    assert judged.changes([row("p", "v", 3)], "static", profile=False) == ([], 0)


def test_it_prints_each_reward_with_and_without_a_profile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path, result = tmp_path / "rows.jsonl", tmp_path / "result.json"
    rows = [*table(), *(r | {"profile": False} for r in table(wrong=True))]
    path.write_text("".join(json.dumps(r) + "\n" for r in rows))
    words = [str(path), "--rewards", "static", "--resamples", "20", "--json", str(result)]
    monkeypatch.setattr(sys, "argv", ["reward_correlation", *words])
    judged.main()
    said = capsys.readouterr().out
    assert "static, with a profile: 15 builds of 3 programs, 0 left out\n  Spearman 1.000" in said
    assert "static, without a profile: 15 builds of 3 programs, 0 left out\n  Spearman -1.0" in said
    assert "right sign 100.0 % [100.0, 100.0] of 12 builds that change J by 0.2 % or more" in said
    (written,) = json.loads(result.read_text())["tables"].values()
    assert [cells[0] for cells in written["rows"]] == ["static", "static"]
