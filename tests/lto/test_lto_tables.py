"""What ``benchmarks.lto`` says of the programs that it has measured."""

import json
from pathlib import Path
from typing import Any

from benchmarks import lto, lto_tables

POLICY = "0123456789ab"


def line(program: str, language: str, before: float, after: float, **more: Any) -> dict[str, Any]:
    """Return the line of a link in which code changes by half of what bytes do."""
    return {
        "kind": "link",
        "of": "bench",
        "program": program,
        "language": language,
        "style": "C: x" if language == "c" else "expression templates: y",
        "lto": "full",
        "policy": POLICY,
        "stock": [before, before],
        "made": [after, (before + after) / 2],
        "cpu_seconds": [1.0, 1.5],
        "failure": None,
        **more,
    }


LINES = [
    line("one/a", "c", 1000.0, 1010.0),
    line("two/b", "c++", 1000.0, 900.0, cpu_seconds=[3.0, 3.3]),
    line("two/b", "c++", 1000.0, 800.0, kind="search", compiles=25.0),
    line("six/f", "c", 0.0, 0.0, stock=None, made=None, failure="not linked"),
    line("two/b", "c++", 1000.0, 1.0, policy="another"),
]


def test_groups_say_how_many_grow_and_the_worst() -> None:
    table = lto_tables.tables_of(LINES, POLICY)["groups"]
    titles = [title for title, _ in table["columns"]]
    rows = {row[0]: dict(zip(titles, row, strict=True)) for row in table["rows"]}
    every = rows["all programs of bench, full, policy"]
    assert every["programs"] == 2 and every["above +0.2 %"] == 1
    assert every["worst program"] == "one/a" and every["share that gains"] == 50
    assert abs(every["geometric mean"][0] - 100 * ((1.01 * 0.9) ** 0.5 - 1)) < 1e-9
    assert abs(every["CPU of links"] - 4.8 / 4) < 1e-9
    assert abs(rows["C of bench, full, policy"]["geometric mean"][1] - 0.5) < 1e-9
    search = rows["C++, expression templates of bench, full, search"]
    assert abs(search["geometric mean"][0] + 20) < 1e-9 and search["CPU of links"] is None


def test_programs_have_both_and_the_worst_comes_first() -> None:
    found = lto_tables.tables_of(LINES, POLICY)
    assert [row[0] for row in found["full"]["rows"]] == ["one/a", "two/b"]
    assert found["full"]["rows"][0][4] is None and found["full"]["rows"][1][4] == (-20, -10)
    assert found["failures"]["rows"] == [["six/f", "full", "link", "not linked"]]
    assert "thin" not in found


def test_what_was_measured_again_counts_once(tmp_path: Path) -> None:
    path = tmp_path / "lines.jsonl"
    again = line("one/a", "c", 1000.0, 990.0)
    path.write_text("".join(json.dumps(each) + "\n" for each in [*LINES, again]))
    kept = lto.read(path)
    assert len(kept) == len(LINES)
    assert next(each for each in kept if each["program"] == "one/a")["made"][0] == 990.0
    assert lto.read(tmp_path / "none") == []
