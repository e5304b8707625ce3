"""What all commands print with."""

import json
import math

import numpy as np
import pytest
from rich.table import Table

from nestor.cli.console import json_text, percent, print_json, print_table


def test_json_has_no_infinity_and_no_nan(capsys: pytest.CaptureFixture[str]) -> None:
    value = {"a": [math.inf, (1, -math.inf)], "b": {"c": math.nan, "d": np.float64("nan")}, "e": 1}
    print_json(value)
    printed = capsys.readouterr().out
    for text in (printed, json_text(value)):
        found = json.loads(text, parse_constant=pytest.fail)
        assert found == {"a": [None, [1, None]], "b": {"c": None, "d": None}, "e": 1}


def test_files_take_any_name_of_a_path() -> None:
    assert json.loads(json_text("caf\udce9").encode()) == "caf\udce9"


def test_percent() -> None:
    assert percent(None) == "[bold red]failed[/]"
    assert percent(-1.0) == "[green]-1.00 %[/]"
    assert percent(math.inf) == "[red]–[/]"
    assert percent(math.nan) == "[default]–[/]"


def test_no_table_is_folded_in_a_pipe(capsys: pytest.CaptureFixture[str]) -> None:
    table = Table(*(f"column {number}" for number in range(30)))
    table.add_row(*("123,456,789" for _ in range(30)))
    print_table(table)
    said = capsys.readouterr().out
    assert said.count("123,456,789") == 30
    assert len(said.splitlines()) == 5
