"""What the commands print with: tables and messages on stdout, progress on stderr."""

import contextlib
import json
import os
import sys
from collections.abc import Iterator
from typing import Any

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.progress import Progress as Bars

from nestor.cli.remarks import silenced
from nestor.progress import Progress, silent

_PIPE_WIDTH = 140
"""Columns of a table in a pipe or file, where no terminal's edge folds it."""

_free = not sys.stdout.isatty() and "COLUMNS" not in os.environ
stdout = Console(highlight=False, width=_PIPE_WIDTH if _free else None)
stderr = Console(stderr=True, highlight=False)


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


def print_json(value: Any) -> None:
    """Print a value as JSON, and nothing else, on standard output."""
    print(json.dumps(value, indent=2, ensure_ascii=False))


def counted(number: int, noun: str) -> str:
    """Return a number of things as text, such as ``1 module`` and ``1,234 modules``."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def percent(change: float | None) -> str:
    """Return a change as text: green when smaller, red when larger."""
    if change is None:
        return "[bold red]failed[/]"
    colour = "green" if change < -0.005 else "red" if change > 0.005 else "default"
    return f"[{colour}]{change:+.2f} %[/]"
