"""``nestor log``: what a policy was asked and what it answered in one compile."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tyro
from rich.markup import escape
from rich.table import Table

from nestor.cli.console import print_json, stdout
from nestor.cli.setup import DEFAULT_PROBLEM
from nestor.errors import NestorError
from nestor.problem.registry import find_problem

_LEFT_OUT = ("log_probability", "overridden")
"""What only JSON shows."""


@dataclass(frozen=True)
class Log:
    """Show the trajectory log of one compile: every decision, its answer and its effect.

    For inlining, the keys can be copied into a file of overrides (docs/reference/formats.md), and
    names of functions are shown if the log was written with -nestor-log-names.

    Examples:
        nestor clang POLICY -- -Oz -c x.cpp -mllvm -nestor-log=x.log -mllvm -nestor-log-names
        nestor log x.log --deviations
        nestor log x.log --json
    """

    file: tyro.conf.Positional[Path]
    """The log."""
    problem: str = DEFAULT_PROBLEM
    """The problem that it is a log of."""
    deviations: bool = False
    """Only decisions that differ from the default heuristic's."""
    json: bool = False
    """Print JSON, with all features."""

    def run(self) -> int:
        """Print the log."""
        if not self.file.is_file():
            raise NestorError(f"There is no log {self.file}; compile with -mllvm -nestor-log=FILE.")
        problem = find_problem(self.problem)
        log = problem.read_log(self.file)
        chosen = [
            number
            for number in range(len(log))
            if not self.deviations or log.answer[number] != log.default[number]
        ]
        rows = [problem.describe(log, number) for number in chosen]
        if self.json:
            full = [
                row | {"features": {n: log.decisions[n][number].item() for n in log.features}}
                if log.candidates is None
                else row
                for number, row in zip(chosen, rows, strict=True)
            ]
            print_json({"decisions": full, **log.facts})
            return 0
        table = Table(title=f"{len(rows)} of {len(log)} decisions")
        columns = [name for name in (rows[0] if rows else {}) if name not in _LEFT_OUT]
        for column in columns:
            table.add_column(column, overflow="fold")
        for row in rows:
            said = row | {end: problem.word(row[end]) for end in ("default", "answer")}
            said["answer"] += " (override)" if row.get("overridden") else ""
            table.add_row(*(_shown(said[column]) for column in columns))
        stdout.print(table)
        for name, value in log.facts.items():
            if value and name != "module":
                stdout.print(f"{name.replace('_', ' ')}: {value:,}")
        return 0


def _shown(value: Any) -> str:
    return f"{value:+.3f}" if isinstance(value, float) else escape(str(value))
