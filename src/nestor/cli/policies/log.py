"""``nestor log``: the questions and answers of one compile."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tyro
from rich.markup import escape
from rich.table import Table

from nestor.cli.console import print_json, progress, stdout
from nestor.cli.setup import DEFAULT_PROBLEM, ready_plugin
from nestor.corpus import store
from nestor.corpus.level import parse_level
from nestor.corpus.model import require_level
from nestor.errors import NestorError
from nestor.problem.problem import Problem
from nestor.problem.registry import find_problem
from nestor.problem.rollout import Request
from nestor.problem.trajectory import Trajectory
from nestor.rollout.local_pool import LocalPool

_LEFT_OUT = ("log_probability", "overridden")
"""What only JSON shows."""


@dataclass(frozen=True)
class Log:
    """Show the decisions of one compile: every question, the default, the answer and its effect.

    Either of a log that a compile wrote, or of a unit of a corpus, which is compiled under a
    policy. For inlining, the keys can be copied into a file of overrides
    (docs/reference/formats.md), and names of functions are shown if the log was written with
    -nestor-log-names.

    Examples:
        nestor clang POLICY -- -Oz -c x.cpp -mllvm -nestor-log=x.log -mllvm -nestor-log-names
        nestor log x.log --deviations
        nestor log x.log --json
        nestor log --corpus corpus/tiny --unit bzip2/blocksort.o --policy shipped
        nestor log --problem regalloc-eviction --corpus corpus/tiny-O2 --unit bzip2/blocksort.o
    """

    file: tyro.conf.Positional[Path | None] = None
    """The log, unless a unit of a corpus is to be compiled."""
    problem: str = DEFAULT_PROBLEM
    """The problem whose decisions they are."""
    corpus: Path | None = None
    """The corpus that holds --unit."""
    unit: str | None = None
    """The unit to compile: a module's name, or the last part of it."""
    policy: str = "default"
    """Who decides in it: a policy file or a built-in."""
    deviations: bool = False
    """Only decisions that differ from the default heuristic's."""
    llvm: str | None = None
    """LLVM to use: a prefix or a clang."""
    json: bool = False
    """Print JSON, with all features."""

    def run(self) -> int:
        """Print the decisions."""
        problem = find_problem(self.problem)
        log = self._compiled(problem) if self.file is None else self._read(problem, self.file)
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
        stdout.print(f"{len(rows):,} of {len(log):,} decisions")
        if rows:
            stdout.print(_table(problem, rows))
        for name, value in log.facts.items():
            if value and name != "module":
                stdout.print(f"{name.replace('_', ' ')}: {value:,}")
        return 0

    def _read(self, problem: Problem, file: Path) -> Trajectory:
        if not file.is_file():
            raise NestorError(f"There is no log {file}; compile with -mllvm -nestor-log=FILE.")
        return problem.read_log(file)

    def _compiled(self, problem: Problem) -> Trajectory:
        if self.corpus is None or self.unit is None:
            raise NestorError("Name the file of a log, or a unit: --corpus DIR --unit NAME.")
        corpus = store.load(self.corpus)
        require_level(corpus, parse_level(problem.level))
        named = [
            m for m in corpus.modules if m.name == self.unit or m.name.endswith(f"/{self.unit}")
        ]
        if len(named) != 1:
            raise NestorError(
                f"'{self.unit}' is the name of {len(named)} modules of the corpus; 'nestor corpus"
                " info --json' lists them."
            )
        policy = problem.policy(self.policy)
        with progress() as report:
            plugin = ready_plugin(problem, self.llvm, report)
            with LocalPool(problem, corpus, plugin) as pool:
                (done,) = pool.run([Request(named[0], policy, log=True, names=True)], report)
        if done.trajectory is None:
            raise NestorError(f"{named[0].name}: {done.failure}.")
        return done.trajectory


def _table(problem: Problem, rows: Sequence[dict[str, Any]]) -> Table:
    table = Table()
    columns = [name for name in rows[0] if name not in _LEFT_OUT]
    for column in columns:
        table.add_column(column, overflow="fold")
    for row in rows:
        said = row | {end: problem.word(row[end]) for end in ("default", "answer")}
        said["answer"] += " (override)" if row.get("overridden") else ""
        table.add_row(*(_shown(said[column]) for column in columns))
    return table


def _shown(value: Any) -> str:
    return f"{value:+.3f}" if isinstance(value, float) else escape(str(value))
