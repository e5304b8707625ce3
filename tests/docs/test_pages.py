"""The pages are short enough, their numbers are those of the result files, their links lead."""

import json
import re
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

from benchmarks import result_tables, tables
from tests.docs.pages import PAGES, ROOT, anchors, links, name

README_LIMIT = 8192
"""Bytes: what a newcomer reads before a first command."""


def test_readme_is_short() -> None:
    assert len((ROOT / "README.md").read_bytes()) <= README_LIMIT


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_marked_regions_are_those_of_the_result_files(page: Path) -> None:
    text = page.read_text()
    stale = [
        ours
        for ours, new in zip(text.split("\n"), tables.filled(text).split("\n"), strict=False)
        if ours != new
    ]
    assert not stale, f"{name(page)} is stale: run python -m benchmarks.tables"


def test_every_mark_is_closed() -> None:
    for page in PAGES:
        text = page.read_text()
        opened = re.findall(r"<!-- (?:table|value): .+? -->", text)
        assert len(opened) == text.count("<!-- end -->"), name(page)


def test_a_changed_number_is_stale(monkeypatch: pytest.MonkeyPatch) -> None:
    page = (ROOT / "README.md").read_text()
    content = json.loads((tables.RESULTS / "policy_shipped.json").read_text())
    content["tables"]["groups"]["rows"][0][2][0] -= 1
    others = result_tables.result
    monkeypatch.setattr(
        tables, "result", lambda file: content if file == "policy_shipped" else others(file)
    )
    assert tables.filled(page) != page


@pytest.mark.parametrize(
    "mark",
    ["table: nothing.groups", "table: policy_shipped.nothing", "value: guard.modes[gc][nothing]"],
)
def test_a_mark_that_names_nothing_is_an_error(mark: str) -> None:
    with pytest.raises(tables.StaleMarkError):
        tables.filled(f"<!-- {mark} --><!-- end -->")


def test_result_files_say_what_produced_them() -> None:
    for path in sorted(tables.RESULTS.glob("*.json")):
        content = json.loads(path.read_text())
        if "tables" in content:
            assert {"about", "command", "date", "commit"} <= content.keys(), path.name
            for title, table in content["tables"].items():
                widths = {len(row) for row in table["rows"]}
                assert widths == {len(table["columns"])}, f"{path.name}: {title}"


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_links_lead_somewhere(page: Path) -> None:
    for link in links(page):
        target, _, anchor = link.partition("#")
        other = (page.parent / target).resolve() if target else page
        assert other.exists(), f"{name(page)} links to {link}"
        if anchor:
            assert anchor in anchors(other), f"{name(page)} links to {link}"


def test_every_page_is_reached_from_the_map() -> None:
    reached = {(ROOT / "docs" / link.partition("#")[0]).resolve() for link in links(PAGES[2])}
    missing = [name(page) for page in PAGES[3:] if page not in reached]
    assert name(PAGES[2]) == "docs/README.md"
    assert not missing


def test_pages_named_in_the_code_exist() -> None:
    folders = ("src", "benchmarks", "examples", "scripts", "tests")
    suffixes = {".py", ".h", ".cpp", ".c", ".sh", ".md"}
    for folder in folders:
        for path in (ROOT / folder).glob("**/*"):
            if path.suffix in suffixes and path.is_file():
                for named in re.findall(r"\bdocs/[\w/-]+\.md", path.read_text()):
                    assert (ROOT / named).is_file(), f"{path.relative_to(ROOT)} names {named}"


def test_pictures_are_well_formed() -> None:
    for path in (ROOT / "docs").glob("**/*.svg"):
        assert ElementTree.parse(path).getroot().tag.endswith("svg")
