"""Packages, files and layers that the pages name are those of the code."""

import re
import tomllib
from pathlib import Path
from typing import Final

import pytest

from tests.docs.pages import PAGES, ROOT, name, prose
from tests.test_structure import EXCEPT, GENERAL

SOURCES: Final = ROOT / "src" / "nestor"
ARCHITECTURE: Final = ROOT / "docs" / "internals" / "architecture.md"
GLOSSARY: Final = ROOT / "docs" / "reference" / "glossary.md"
_WALKS: Final = {"A decision, from command to score": 15, "A module in training": 15, "A block": 15}
"""The sections that go through the code file by file, with the rows that they may have."""
_CODE: Final = re.compile(r"`([^`\n]+)`")
_FILE: Final = re.compile(r"[\w-]+(/[\w.-]+)+/?")
_FROM_ROOT: Final = re.compile(r"(?:src|tests|benchmarks|scripts|examples)/[\w./-]+")
_PYTHON: Final = re.compile(r"\bfrom (nestor[\w.]*) import (\w+)")
_DOTTED: Final = re.compile(r"`(nestor(?:\.\w+)+)`")


def section(title: str) -> str:
    """Return a section of the architecture's page."""
    text = ARCHITECTURE.read_text()
    found = re.search(rf"^##+ {re.escape(title)}\n(.*?)(?=^##|\Z)", text, re.DOTALL | re.MULTILINE)
    assert found, f"there is no section '{title}'"
    return found[1]


def places(text: str) -> list[str]:
    """Return the files and folders below ``src/nestor`` that a text names as code."""
    heads = {path.name for path in SOURCES.iterdir()}
    return [
        code
        for code in _CODE.findall(text)
        if _FILE.fullmatch(code) and code.partition("/")[0] in heads
    ]


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_places_exist(page: Path) -> None:
    for place in places(prose(page)):
        assert list(SOURCES.glob(f"{place.rstrip('/')}*")), f"{name(page)} names {place}"


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_places_from_the_root_exist(page: Path) -> None:
    for code in filter(_FROM_ROOT.fullmatch, _CODE.findall(prose(page))):
        assert (ROOT / code).exists(), f"{name(page)} names {code}"


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_code_imports_what_there_is(page: Path) -> None:
    for module, what in _PYTHON.findall(page.read_text()):
        path = SOURCES.parent / module.replace(".", "/")
        path = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
        assert path.is_file(), f"{name(page)} imports {module}"
        assert re.search(rf"\b{what}\b", path.read_text()), f"{name(page)} imports {module}.{what}"


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_dotted_names_exist(page: Path) -> None:
    for dotted in _DOTTED.findall(page.read_text()):
        module, rest = SOURCES.parent, dotted.split(".")
        while rest and (module / rest[0]).is_dir():
            module = module / rest.pop(0)
        if rest and (module / f"{rest[0]}.py").is_file():
            module = module / f"{rest.pop(0)}.py"
        if rest:
            face = module if module.is_file() else module / "__init__.py"
            assert re.search(rf"\b{rest[0]}\b", face.read_text()), f"{name(page)} names {dotted}"


def test_layers_are_those_that_are_checked() -> None:
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]
    layers = next(c["layers"] for c in contracts["contracts"] if "layers of docs" in c["name"])
    checked = [
        [part.strip().removeprefix("nestor.") for part in line.split("|")] for line in layers
    ]
    block = re.search(r"^```\n(.*?)^```", section("Layers"), re.DOTALL | re.MULTILINE)
    assert block
    lines = [re.split(r" {2,}", line)[0] for line in block[1].splitlines()]
    shown = [[part.strip() for part in line.split("|")] for line in lines]
    assert shown == checked


def test_general_packages_are_those_that_are_searched() -> None:
    _, listed, rest, _ = section("General packages").strip().split("\n\n")
    assert sorted(_CODE.findall(listed)) == sorted(GENERAL)
    assert EXCEPT.keys() <= set(_CODE.findall(rest))


@pytest.mark.parametrize("title", _WALKS)
def test_a_walk_is_short_and_its_files_exist(title: str) -> None:
    rows = re.findall(r"^\| (\d+) \| (.+?) \|", section(title), re.MULTILINE)
    assert [int(number) for number, _ in rows] == list(range(1, len(rows) + 1))
    assert 5 < len(rows) <= _WALKS[title]
    for _, cell in rows:
        files = _CODE.findall(cell)
        assert files
        for file in files:
            assert (SOURCES / file).is_file(), file


def test_words_of_the_glossary_have_a_place() -> None:
    table = GLOSSARY.read_text().partition("## Nestor's nouns\n")[2].partition("\n## ")[0]
    rows = [line.strip("|").split(" | ") for line in table.splitlines() if line.startswith("| ")]
    assert len(rows) > 50
    for row in rows[1:]:
        assert len(row) == 3, row
        for place in _CODE.findall(row[2]):
            folder = ROOT if place.startswith("benchmarks/") else SOURCES
            assert (folder / place).exists(), f"{row[0].strip()}: {place}"
