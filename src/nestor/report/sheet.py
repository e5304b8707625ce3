"""Pages of charts and tables: what they consist of, as plain data."""

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from nestor.report.page import sheet_page

Cell = str | float | int | None


@dataclass(frozen=True)
class Series:
    """One curve."""

    name: str
    points: tuple[tuple[float, float], ...]


@dataclass(frozen=True)
class Chart:
    """Curves in one frame."""

    title: str
    x: str
    y: str
    series: tuple[Series, ...]
    small: bool = False
    """Charts that follow each other stand side by side."""


@dataclass(frozen=True)
class Bar:
    """One bar, with an interval if there is one."""

    name: str
    value: float
    low: float | None = None
    high: float | None = None
    note: str = ""


@dataclass(frozen=True)
class Bars:
    """Bars below each other."""

    title: str
    unit: str
    rows: tuple[Bar, ...]
    plain: bool = False
    """Without the colours that tell savings from costs."""


@dataclass(frozen=True)
class Column:
    """The head of a table's column."""

    title: str
    numeric: bool = False
    hint: str = ""


@dataclass(frozen=True)
class Table:
    """A table; of a small one without details, a row with one more cell that is true is marked."""

    title: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[Cell, ...], ...]
    details: tuple[tuple["Section", ...], ...] | None = None
    """What is shown of each row when it is chosen."""


@dataclass(frozen=True)
class Text:
    """A paragraph."""

    text: str


Section = Chart | Bars | Table | Text


def sheet(title: str, subtitle: str, sections: Sequence[Section]) -> str:
    """Return the text of a page; numbers that are not finite are left out."""
    plain = [_plain(section) for section in sections]
    return sheet_page({"title": title, "subtitle": subtitle, "sections": plain})


def _plain(section: Section) -> dict[str, Any]:
    kind = type(section).__name__.lower()
    if isinstance(section, Chart):
        series = [
            {"name": s.name, "points": [p for p in s.points if all(map(math.isfinite, p))]}
            for s in section.series
        ]
        return asdict(section) | {"kind": kind, "series": [s for s in series if s["points"]]}
    if isinstance(section, Table):
        details = section.details
        return {
            "kind": kind,
            "title": section.title,
            "columns": [asdict(column) for column in section.columns],
            "rows": [[_finite(cell) for cell in row] for row in section.rows],
            "details": None if details is None else [[_plain(s) for s in own] for own in details],
        }
    if isinstance(section, Bars):
        rows = [asdict(bar) for bar in section.rows if math.isfinite(bar.value)]
        rows = [{name: _finite(value) for name, value in row.items()} for row in rows]
        return {
            "kind": kind,
            "title": section.title,
            "unit": section.unit,
            "plain": section.plain,
            "rows": [r | ({} if r["high"] is not None else {"low": None}) for r in rows],
        }
    return asdict(section) | {"kind": kind}


def _finite(cell: Cell) -> Cell:
    return None if isinstance(cell, float) and not math.isfinite(cell) else cell
