"""The page of ``nestor compare --page``: training runs as curves, bars and tables."""

import json
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from nestor.errors import NestorError
from nestor.evaluate.compare_runs import Learner, TrainingRun, curve_rows
from nestor.files import read_regular
from nestor.report.sheet import Bar, Bars, Chart, Column, Section, Series, Table, Text, sheet

_AXIS: Final = "spent/compiles"
_MOST_POINTS: Final = 400
"""Of a run's curve: more cannot be seen."""


def compare_page(
    runs: Sequence[TrainingRun], learners: Sequence[Learner], recorded: Sequence[Path] = ()
) -> str:
    """Return the page.

    :param recorded: files with recorded tables, such as those of ``benchmarks.ablation --json``.
    """
    sections: list[Section] = []
    judged = [row for row in learners if row.change_pct is not None]
    if judged:
        sections.append(Bars("Score of programs against stock", "%", tuple(map(_bar, judged))))
        sections.append(
            Text(
                "Geometric mean over the programs, mean over seeds; the interval of 95 % is over"
                " seeds and projects. Runs that differ in a setting are named by it, so that the"
                " bars show what the setting is worth."
            )
        )
    sections += _objectives(learners)
    sections.append(_table(learners))
    for path in recorded:
        sections += _recorded(path)
    sections += _raw(runs)
    names = ", ".join(dict.fromkeys(row.name for row in learners))
    return sheet(f"{len(runs)} training runs", names, sections)


def _bar(row: Learner) -> Bar:
    low, high = row.interval or (None, None)
    worst = f"worst: {row.worst[0]} {row.worst[1]:+.2f} %" if row.worst else ""
    return Bar(row.name, row.change_pct or 0.0, low, high, worst)


def _objectives(learners: Sequence[Learner]) -> list[Section]:
    """Return the training objective against both kinds of cost."""
    curves = [row for row in learners if row.curve]
    found: list[Section] = []
    for x, name in (("compiles", "compiles"), ("CPU minutes", "cpu_minutes")):
        series = tuple(
            Series(row.name, tuple((float(getattr(p, name)), p.change_pct) for p in row.curve))
            for row in curves
        )
        if any(point[0] for own in series for point in own.points):
            found.append(
                Chart(f"Training objective against {x}", x, "change against stock, %", series)
            )
    return found


def _table(learners: Sequence[Learner]) -> Table:
    columns = (
        Column("learner"),
        Column("seeds", numeric=True),
        Column("change, %", numeric=True),
        Column("low", numeric=True, hint="of the 95 % interval"),
        Column("high", numeric=True, hint="of the 95 % interval"),
        Column("worst program"),
        Column("worst, %", numeric=True),
        Column("compiles", numeric=True),
        Column("CPU minutes", numeric=True),
        Column("own, %", numeric=True, hint="the part of the time that was not compilers"),
        Column("failures", numeric=True),
    )
    rows = tuple(
        (
            row.name,
            len(row.seeds),
            row.change_pct,
            row.interval[0] if row.interval else None,
            row.interval[1] if row.interval else None,
            row.worst[0] if row.worst else "",
            row.worst[1] if row.worst else None,
            row.compiles,
            row.measured_minutes if row.cpu_minutes is None else row.cpu_minutes,
            row.overhead_pct,
            row.failures,
        )
        for row in learners
    )
    return Table("Learners", columns, rows)


def _recorded(path: Path) -> list[Section]:
    """Return the tables of a file of results, with bars for the first column in per cent.

    :raises NestorError: if it is no such file.
    """
    try:
        content = json.loads(read_regular(path, "recorded tables"))
        found: list[Section] = [Text(str(content.get("about", "")))]
        for name, table in content["tables"].items():
            titles = [(str(title), str(form)) for title, form in table["columns"]]
            rows = tuple(tuple(row) for row in table["rows"])
            numeric = [
                all(isinstance(row[n], (int, float)) for row in rows) for n in range(len(titles))
            ]
            columns = tuple(
                Column(title, numeric=is_number)
                for (title, _), is_number in zip(titles, numeric, strict=True)
            )
            found.append(Table(f"{path.stem}: {name}", columns, rows))
            shown = [n for n, (_, form) in enumerate(titles) if "%" in form and numeric[n]]
            if shown:
                bars = tuple(Bar(str(row[0]), float(row[shown[0]])) for row in rows)
                found.append(Bars(titles[shown[0]][0], "%", bars))
    except (ValueError, KeyError, TypeError, AttributeError, IndexError) as error:
        raise NestorError(
            f"{path} holds no recorded tables ({type(error).__name__}: {error})."
        ) from None
    return found


def _raw(runs: Sequence[TrainingRun]) -> list[Section]:
    """Return a chart for each quantity that the learners recorded, a curve for each run."""
    charts: defaultdict[str, list[Series]] = defaultdict(list)
    for run in runs:
        rows = curve_rows(run.folder / "curves.jsonl")
        for name in dict.fromkeys(key for row in rows for key in row):
            points = [
                (float(row.get(_AXIS, number)), float(row[name]))
                for number, row in enumerate(rows)
                if isinstance(row.get(name), (int, float))
                and name != "step"
                and not name.startswith("spent/")
            ]
            if len(points) > 1:
                step = -(-len(points) // _MOST_POINTS)
                charts[name].append(Series(run.folder.name, tuple(points[::step])))
    return [
        Chart(name, "compiles (updates where none are counted)", name, tuple(series), small=True)
        for name, series in sorted(charts.items())
    ]
