"""The tables of packages drawn at random."""

import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks import sample_judgement
from benchmarks.sample_table import tables


def _line(package: str, changes: list[float], **more: Any) -> dict[str, Any]:
    programs = [
        {
            "name": f"{package}/{number}",
            "language": "c++",
            "modules": 3,
            "foreign": 0,
            "shared_pct": 0.0,
            "stock": {"gc": {"linked": 20_000, "text": 10_000}},
            "change": {"shipped": {"gc": [change, 2 * change]}},
        }
        for number, change in enumerate(changes)
    ]
    return {
        "package": package, "language": "c++", "half": "development", "failures": [],
        "programs": programs, **more,
    }  # fmt: skip


def test_distribution_losers_and_failures() -> None:
    lost = [{"reason": "no source", "detail": "", "partial": False}]
    late = [{"reason": "build failed", "detail": "", "partial": True}]
    lines = [
        _line("one", [-4.0, 3.0]),
        _line("two", [0.0, -2.0], failures=late),
        _line("three", [], failures=lost),
        _line("final", [50.0], half="final"),
    ]
    copied = _line("copied", [40.0])
    copied["programs"][0]["shared_pct"] = 20.0
    found = tables([*lines, copied], "development", 10_000)
    assert found["packages"]["rows"] == [["c++, development", 4, 3, 2, 4, "no source 1"]]
    (row,) = found["change"]["rows"]
    titles = [title for title, _ in found["change"]["columns"]]
    cells = dict(zip(titles, row, strict=True))
    assert (cells["number"], cells["gain"], cells["lose"]) == (4, 50.0, 25.0)
    assert cells["worst in bytes / in code, of any program"] == [3.0, 6.0]
    assert cells["worst in bytes"] == "one/1"
    assert cells["geometric mean"][0] == pytest.approx(-0.784, abs=0.01)
    low, high = cells["95 % by package"]
    assert low < cells["geometric mean"][0] < high
    (row,) = found["change_by_modules"]["rows"]
    assert row[0] == "c++, development, 2–9 modules"
    both = tables([*lines, copied], "both", 10_000)
    assert [row[0] for row in both["packages"]["rows"]] == ["c++, development", "c++, final"]
    assert both["change"]["rows"][0] == found["change"]["rows"][0]
    assert both["change"]["rows"][1][:4] == ["c++, final", "shipped", "gc", 1]
    assert tables(lines, "both", 30_000)["change"]["rows"] == []


def test_packages_that_have_a_line_are_not_judged_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = {"language": "c++", "bytes": 1}
    halves = {"one": "development", "two": "final", "three": "development"}
    draw = {"packages": [{"name": n, "half": h, **package} for n, h in halves.items()]}
    (tmp_path / "draw.json").write_text(json.dumps(draw))
    judged = []

    def judge(wanted: sample_judgement.Wanted, *_: object) -> dict[str, Any]:
        judged.append(wanted.name)
        lost = [{"reason": "no source", "detail": "", "partial": False}]
        line = _line(wanted.name, [1.0] if wanted.name == "one" else [], failures=lost)
        for program in line["programs"]:
            program["change"]["distilled"] = {"gc": None}  # a compile took too long, say
        return line

    monkeypatch.setattr(sample_judgement, "judge", judge)

    def run(*words: str) -> list[str]:
        judged.clear()
        place = ["--results", str(tmp_path / "results")]
        monkeypatch.setattr("sys.argv", ["x", "judge", str(tmp_path / "draw.json"), *place, *words])
        assert sample_judgement.main() == 0
        return list(judged)

    assert run() == ["one", "three"]
    assert run() == []
    assert run("--again", "no source") == ["three"]
    assert run("--half", "both") == ["two"]
    assert run("--incomplete") == ["one"]
    assert run("--changed") == ["one"]  # whose line names no policies
    names = [line["package"] for line in sample_judgement.lines_of(tmp_path / "results")]
    assert sorted(names) == ["one", "three", "two"]


def test_draws_take_turns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    judged = []

    def judge(wanted: sample_judgement.Wanted, options: Any, *_: object) -> dict[str, Any]:
        judged.append(wanted.name)
        assert options.policies == ["shipped"]
        return _line(wanted.name, [])

    monkeypatch.setattr(sample_judgement, "judge", judge)
    for file, names in (("one.json", "abc"), ("two.json", "xy")):
        packages = [{"name": n, "half": "development", "language": "c++"} for n in names]
        (tmp_path / file).write_text(json.dumps({"packages": packages}))
    files = [str(tmp_path / "one.json"), str(tmp_path / "two.json")]
    options = ["--results", str(tmp_path / "results"), "--policies", "shipped", "--count", "4"]
    monkeypatch.setattr("sys.argv", ["x", "judge", *files, *options])
    assert sample_judgement.main() == 0
    assert judged == ["a", "x", "b", "y"]
    assert sample_judgement.main() == 0
    assert judged == ["a", "x", "b", "y", "c"]


def test_a_policy_is_judged_again_and_the_others_stay(capsys: pytest.CaptureFixture[str]) -> None:
    machine = {"machine": {"processor": "one"}}
    earlier = _line("one", [-4.0, 3.0], policies={"shipped": "a", "distilled": "b"}, **machine)
    line = _line("one", [0.0, 0.0], policies={"distilled": "c"}, **machine)
    for program, change in zip(line["programs"], (-1.0, -2.0), strict=True):
        program["change"] = {"distilled": {"gc": [change, change]}}
    found = sample_judgement.merged(earlier, line)
    assert found["policies"] == {"shipped": "a", "distilled": "c"}
    assert [program["change"] for program in found["programs"]] == [
        {"shipped": {"gc": [-4.0, -8.0]}, "distilled": {"gc": [-1.0, -1.0]}},
        {"shipped": {"gc": [3.0, 6.0]}, "distilled": {"gc": [-2.0, -2.0]}},
    ]
    line["programs"][0]["stock"]["gc"]["linked"] += 1
    assert sample_judgement.merged(earlier, line) is earlier, "the package is another one by now"
    assert "other stock programs" in capsys.readouterr().err
    lost = _line("one", [], **machine)
    assert sample_judgement.merged(earlier, lost) is earlier
    assert sample_judgement.merged(lost, line) is line
