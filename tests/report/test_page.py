"""The page's data: columns come back as they went in, and no text of a log is markup."""

import base64
import json
import re
import zlib
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from nestor.cli.debug.report import Report
from nestor.compiler.plugin import Plugin
from nestor.errors import NestorError
from nestor.report.packing import Pack
from nestor.report.page import SCRIPTS, SHEET_SCRIPTS
from nestor.report.sides import Sides
from nestor.report.tables import page_data
from tests.command import nestor
from tests.inlining import PROBLEM
from tests.report.programs import MAKEFILE, compiled, hostile, text_of


@pytest.fixture(scope="module")
def sides(tmp_path_factory: pytest.TempPathFactory, plugin: Plugin) -> Sides:
    return compiled(tmp_path_factory.mktemp("report"), plugin, measure=2)


def unpacked(pack: Pack, column: dict[str, Any]) -> npt.NDArray[Any]:
    content = zlib.decompress(base64.b64decode(pack.blobs[column["blob"]]))
    return np.frombuffer(content, f"<{column['type']}")


@pytest.mark.parametrize(
    ("values", "name"),
    [
        (np.array([0, 255]), "u1"),
        (np.array([-128, 127]), "i1"),
        (np.array([0, 256]), "u2"),
        (np.array([-129, 5]), "i2"),
        (np.array([2**31]), "u4"),
        (np.array([-(2**31), 5]), "i4"),
        (np.array([2**40, -1]), "f8"),
        (np.array([0.0, 3.0]), "u1"),
        (np.array([0.5]), "f8"),
        (np.array([np.nan, np.inf, 1.0]), "f8"),
        (np.array([2**64 - 1], "<u8"), "u8"),
        (np.array([True, False]), "u1"),
        (np.array([], np.int64), "u1"),
    ],
)
def test_columns_come_back(values: npt.NDArray[Any], name: str) -> None:
    pack = Pack()
    column = pack.column(values)
    assert column["type"] == name
    assert np.array_equal(unpacked(pack, column), values, equal_nan=name == "f8")


def test_decisions_and_credit_are_those_of_the_compiles(sides: Sides) -> None:
    data, pack = page_data(PROBLEM, sides)
    always, never = data["decisions"]
    logs = [m.trajectory for m in sides.policies[0].modules.values()]
    assert always["rows"] == sum(map(len, logs)) >= 4
    left = unpacked(pack, always["columns"]["left"])
    assert left.tolist() == [int(b) for log in logs for b in log.answer != log.default]
    share = unpacked(pack, always["columns"]["share"])
    assert share[left == 1].any()
    assert not share[left == 0].any()
    # Where both are asked, they answer otherwise; 'never' asks about no copies.
    other = unpacked(pack, always["columns"]["other"])
    assert set(other.tolist()) <= {-1, 0}
    assert 0 in other
    assert always["words"] == {"0": "keep", "1": "inline"}
    assert never["words"]["0"] == "keep"


def test_what_was_measured_is_the_change_of_the_module(sides: Sides) -> None:
    measured = [
        (module, row, value)
        for side in sides.policies
        for module in side.modules.values()
        for row, value in module.measured.items()
    ]
    assert len(measured) >= 2
    for module, row, value in measured:
        assert module.trajectory.answer[row] != module.trajectory.default[row]
        assert abs(value) < module.total
    assert any(value for _, _, value in measured)


def test_functions_sum_to_their_modules(sides: Sides) -> None:
    """Modules of this program have no constants, so their functions are all they score."""
    data, pack = page_data(PROBLEM, sides)
    modules = unpacked(pack, data["functions"]["module"])
    for scores, totals in zip(data["functions"]["scores"], data["modules"]["scores"], strict=True):
        sums = np.bincount(modules, unpacked(pack, scores), minlength=2)
        assert sums == pytest.approx(unpacked(pack, totals), abs=1)
        assert sums.sum() > 100


def test_no_text_of_a_log_is_in_the_page_as_it_is(sides: Sides) -> None:
    text = text_of(hostile(sides))
    for forbidden in ("onerror", "hacked", "planted", "0123456789abcdef inline"):
        assert forbidden not in text
    # One script is ours; all others are data.
    scripts = re.findall(r"<script[^>]*>", text)
    assert scripts.count("<script>") == 1
    assert all('type="text/plain"' in s for s in scripts if s != "<script>")
    assert "@SCRIPT@" not in text


def test_scripts_never_make_markup() -> None:
    folder = resources.files("nestor.report") / "page"
    banned = re.compile(
        r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\b|new Function"
        r"|createContextualFragment|srcdoc|https?:|DOMParser"
    )
    files = {*SCRIPTS, *SHEET_SCRIPTS, "frame.html", "page.html", "sheet.html", "style.css"}
    for name in sorted(files):
        text = (folder / name).read_text(encoding="utf-8")
        text = text.replace('"http://www.w3.org/2000/svg"', "")  # a name, never fetched
        assert not banned.search(text), name
        assert len(text.splitlines()) <= 350, name
    assert {p.name for p in folder.iterdir()} == files


def test_the_command_writes_a_page(tmp_path: Path, plugin: Plugin) -> None:
    compiled(tmp_path, plugin)
    assert (tmp_path / "sources" / "Makefile").read_text() == MAKEFILE
    out = tmp_path / "p.html"
    where = ["--corpus", str(tmp_path / "corpus"), "--policy", "always", "--out", str(out)]
    done = nestor("report", "p", *where, "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["bytes"] == len(out.read_bytes())
    assert found["policies"][0]["decisions"] >= 4
    assert found["policies"][0]["linked"] != found["default"]["linked"]
    assert out.read_text().startswith("<!doctype html>")


@pytest.mark.parametrize("source", ["javascript:alert('{file}')", "/no/such/folder"])
def test_the_address_of_the_source_is_a_page_or_a_folder(tmp_path: Path, source: str) -> None:
    with pytest.raises(NestorError, match=r"must begin with|no folder"):
        Report("p", tmp_path, "always", tmp_path / "out.html", source=source).run()
