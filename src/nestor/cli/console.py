"""What the commands print with: tables and messages on stdout, progress on stderr."""

import contextlib
import json
import math
import os
import sys
from collections.abc import Iterator, Mapping
from typing import Any

from rich.console import Console
from rich.measure import Measurement
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.progress import Progress as Bars
from rich.table import Table

from nestor.change import change_text
from nestor.cli.remarks import silenced
from nestor.progress import Progress, silent

_PIPE_WIDTH = 140
"""Columns of a table in a pipe or file, where no terminal's edge folds it."""


_WIDEST = 10_000
"""No table needs as many."""


class _Console(Console):
    def on_broken_pipe(self) -> None:
        """Leave it to :mod:`nestor.cli.ending` that nobody reads on; rich would exit with 1."""
        raise  # the error that rich is handling


_free = not sys.stdout.isatty() and "COLUMNS" not in os.environ
stdout = _Console(highlight=False, width=_PIPE_WIDTH if _free else None)
stderr = _Console(stderr=True, highlight=False)


@contextlib.contextmanager
def progress() -> Iterator[Progress]:
    """Draw a bar for every stage that is reported, as long as the context lasts.

    On a terminal the bars live; elsewhere each stage leaves one line when it is done, so that
    logs stay readable. After ``--quiet`` nothing is drawn.
    """
    if silenced():
        yield silent
        return
    if not stderr.is_terminal:
        yield _lines()
        return
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    with Bars(*columns, console=stderr) as bars:
        tasks: dict[str, TaskID] = {}

        def report(stage: str, done: int, total: int) -> None:
            if stage not in tasks:
                tasks[stage] = bars.add_task(stage, total=total)
            bars.update(tasks[stage], completed=done, total=total)

        yield report


def _lines() -> Progress:
    finished: set[str] = set()

    def report(stage: str, done: int, total: int) -> None:
        if done < total:
            finished.discard(stage)
        elif total and stage not in finished:
            finished.add(stage)
            stderr.print(f"{stage}: {done}/{total}", soft_wrap=True)

    return report


def print_line(text: str) -> None:
    """Print a line as it is, such as one with a path: no brackets are markup, nothing is folded."""
    stdout.print(text, soft_wrap=True, markup=False)


def width_of(table: Table) -> int:
    """Return the columns that a table needs for every cell to be whole."""
    return Measurement.get(stdout, stdout.options.update(max_width=_WIDEST), table).maximum


def print_table(table: Table) -> None:
    """Print a table with every cell whole; only a terminal's edge folds it."""
    if stdout.is_terminal:
        stdout.print(table)
    else:
        Console(file=stdout.file, width=width_of(table), highlight=False).print(table)


def print_json(value: Any) -> None:
    """Print a value as JSON, and nothing else, on standard output."""
    print(json_text(value, ensure_ascii=False))


def json_text(value: Any, *, ensure_ascii: bool = True) -> str:
    """Return a value as JSON, which has no infinity and no NaN: such numbers are null.

    :param ensure_ascii: as in :func:`json.dumps`; files take any name of a path so.
    """
    plain = _with_nulls(value)
    return json.dumps(plain, indent=2, ensure_ascii=ensure_ascii, allow_nan=False)


def _with_nulls(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {key: _with_nulls(own) for key, own in value.items()}
    if isinstance(value, list | tuple):
        return [_with_nulls(own) for own in value]
    return value


def counted(number: int, noun: str) -> str:
    """Return a number of things as text, such as ``1 module`` and ``1,234 modules``."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def percent(change: float | None) -> str:
    """Return a change as text: green when smaller, red when larger; None is of what failed."""
    if change is None:
        return "[bold red]failed[/]"
    colour = "green" if change < -0.005 else "red" if change > 0.005 else "default"
    return f"[{colour}]{change_text(change)}[/]"
