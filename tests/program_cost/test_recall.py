"""Cycles of an earlier result are those that a changed model is judged on."""

import json
from pathlib import Path

import pytest

from benchmarks.program_recall import recall, recalled
from benchmarks.program_runs import load

RUN = load()[0]
RESULT = {
    "date": "2026-11-25",
    "machine": {"design": "one"},
    "null": 0.5,
    "left_out": {"brotli/brotli": "the kernel has 26 % of its time"},
    "tables": {
        "programs": {
            "columns": [
                ["program", "{}"],
                ["million cycles", "{}"],
                ["kernel", "{}"],
                ["between sessions", "{}"],
            ],
            "rows": [[f"{RUN.name} (untouched)", 461.587, 2.0, 10.0], ["unknown", 1.0, 0.0, 0.0]],
        }
    },
}


def test_cycles_are_taken_from_a_result(tmp_path: Path) -> None:
    assert recalled(tmp_path) is None
    assert recall(RESULT, tmp_path) == 1
    sessions = [
        json.loads((tmp_path / RUN.name / f"cycles{number}.json").read_text()) for number in (1, 2)
    ]
    assert [one["minimum"] for one in sessions] == pytest.approx([461.587e6, 507.7457e6])
    assert [one["system_share"] for one in sessions] == [0.02, 0.02]
    found = recalled(tmp_path)
    assert found is not None
    assert found["measured"] == "2026-11-25"
    assert found["machine"] == RESULT["machine"]
    # What was recalled once keeps the day of its measurement.
    again = RESULT | {"date": "2026-12-01", "measured": found["measured"]}
    recall(again, tmp_path)
    assert recalled(tmp_path) == found
