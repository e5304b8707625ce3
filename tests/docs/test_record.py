"""Benchmarks write result files that the pages can be filled from, and keep what is not theirs."""

import json
import sys
from pathlib import Path
from typing import Any, Final

import pytest

from benchmarks import record, tables
from benchmarks.result_tables import cell

ROWS: Final[list[list[Any]]] = [["zlib", (-1.23456, 0.5)], ["**mean**", None]]
TABLE = record.table([("program", "{}"), ("change", record.CHANGES)], ROWS)


def test_a_written_table_fills_a_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    record.write(tmp_path / "new.json", "What.", {"programs": TABLE}, {"llvm": "22"}, count=2)
    content = json.loads((tmp_path / "new.json").read_text())
    assert {"about", "command", "date", "commit", "machine", "count"} <= content.keys()
    monkeypatch.setattr(tables, "result", lambda _: content)
    page = tables.filled("<!-- table: new.programs --><!-- end -->")
    assert "| zlib | −1.23 / +0.50 % |" in page
    assert "| **mean** |  |" in page


def test_a_mean_of_one_project_has_no_interval() -> None:
    form = "{:+.2f} [{:+.2f}, {:+.2f}] %"
    assert cell(record.with_interval(-1.5, [-2.25, -1]), form) == "−1.50 [−2.25, −1.00] %"
    assert cell(record.with_interval(-1.5, None), form) == "−1.50 %"


def test_other_tables_and_their_commands_stay(tmp_path: Path) -> None:
    path = tmp_path / "new.json"
    before = {
        "about": "Both.",
        "command": ["nestor identity TINY"],
        "transcribed_from": "a page",
        "tables": {"other": TABLE, "programs": record.table([("program", "{}")], [["old"]])},
    }
    path.write_text(json.dumps(before))
    record.write(path, "One.", {"programs": TABLE}, {})
    content = json.loads(path.read_text())
    assert content["about"] == "Both."
    assert content["command"] == ["nestor identity TINY", record.command(sys.argv[1:])]
    assert set(content["tables"]) == {"other", "programs"}
    assert content["tables"]["programs"]["rows"][0] == ["zlib", [-1.2346, 0.5]]
    assert "transcribed_from" not in content


def test_a_command_names_no_place_of_this_machine(tmp_path: Path) -> None:
    corpus = tmp_path / "bench"
    corpus.mkdir()
    (tmp_path / "own.json").touch()
    words = [str(corpus), str(tmp_path / "own.json"), "--json", str(tmp_path / "x"), "--jobs", "2"]
    assert record.command(words).endswith("BENCH own.json --jobs 2")
