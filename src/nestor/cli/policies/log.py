"""``nestor log``: the questions and answers of one compile."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import tyro
from rich.cells import cell_len
from rich.markup import escape
from rich.table import Table

from nestor.cli.console import print_json, print_table, stdout
from nestor.cli.options import refuse_idle
from nestor.cli.setup import DEFAULT_PROBLEM, corpus_for, ready_pool
from nestor.compiler.demangle import demangle
from nestor.compiler.toolchain import ToolchainError, find
from nestor.errors import NestorError
from nestor.problem.problem import Problem
from nestor.problem.registry import find_problem
from nestor.problem.rollout import Request
from nestor.problem.trajectory import Trajectory

_LEFT_OUT: Final = ("log_probability", "overridden")
"""What only JSON shows."""

_NAMES: Final = ("caller", "callee", "function")
"""Columns of names of functions, which may be long: they are folded to fit a terminal."""

_SPARED: Final = ("copy_of", "logit", "effect")
"""Columns that a narrow terminal does without, the first first."""

_NAME_WIDTH: Final = 16
"""What a column of names has at least on a terminal, before others are left out."""


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
    mangled: bool = False
    """Show functions under the names that the linker knows (JSON has both)."""
    llvm: str | None = None
    """LLVM to use, also to make names readable: a prefix or a clang."""
    json: bool = False
    """Print JSON, with all features."""

    def run(self) -> int:
        """Print the decisions."""
        if self.file is not None:
            refuse_idle(self, "with the log of a compile", "corpus", "unit", "policy")
        problem = find_problem(self.problem)
        log = self._compiled(problem) if self.file is None else self._read(problem, self.file)
        chosen = [
            number
            for number in range(len(log))
            if not self.deviations or log.answer[number] != log.default[number]
        ]
        rows = [problem.describe(log, number) for number in chosen]
        readable = log if self.mangled and not self.json else self._readable(log)
        shown = [problem.describe(readable, number) for number in chosen]
        if self.json:
            full = [
                row
                | {f"{name}_demangled": short[name] for name in _NAMES if name in row}
                | _features(log, number)
                for number, row, short in zip(chosen, rows, shown, strict=True)
            ]
            print_json({"decisions": full, **log.facts})
            return 0
        stdout.print(f"{len(rows):,} of {len(log):,} decisions")
        if shown:
            _print_table(problem, shown)
        for name, value in log.facts.items():
            if value and name != "module":
                stdout.print(f"{name.replace('_', ' ')}: {value:,}")
        return 0

    def _readable(self, log: Trajectory) -> Trajectory:
        """Return ``log`` with its functions' names as people write them."""
        try:
            toolchain = find(self.llvm)
        except ToolchainError:  # a log can be looked at where there is no compiler
            return log
        names = demangle(toolchain, log.names.values())
        return replace(log, names={n: names.get(name, name) for n, name in log.names.items()})

    def _read(self, problem: Problem, file: Path) -> Trajectory:
        if file.is_dir():
            logs = ", ".join(sorted(path.name for path in file.iterdir() if path.is_file())[:3])
            named = f"one of its logs ({logs}…)" if logs else "a log"
            raise NestorError(f"{file} is a folder: name {named}.")
        if not file.is_file():
            raise NestorError(f"There is no log {file}; compile with -mllvm -nestor-log=FILE.")
        return problem.read_log(file)

    def _compiled(self, problem: Problem) -> Trajectory:
        if self.corpus is None or self.unit is None:
            raise NestorError("Name the file of a log, or a unit: --corpus DIR --unit NAME.")
        policy = problem.policy(self.policy)
        corpus = corpus_for(problem, self.corpus, [policy])
        named = [
            m for m in corpus.modules if m.name == self.unit or m.name.endswith(f"/{self.unit}")
        ]
        if len(named) != 1:
            raise NestorError(
                f"'{self.unit}' is the name of {len(named)} modules of the corpus"
                f" {self.corpus}; 'nestor corpus info {self.corpus} --modules' lists them."
            )
        with ready_pool(problem, corpus, self.llvm) as (pool, report):
            (done,) = pool.run([Request(named[0], policy, log=True, names=True)], report)
        if done.trajectory is None:
            raise NestorError(f"{named[0].name}: {done.failure}.")
        return done.trajectory


def _features(log: Trajectory, number: int) -> dict[str, Any]:
    """Return the features of one decision; those of several candidates are left out."""
    if log.candidates is not None:
        return {}
    return {"features": {name: log.decisions[name][number].item() for name in log.features}}


def _print_table(problem: Problem, rows: Sequence[dict[str, Any]]) -> None:
    """Print ``rows`` with every key whole; only a terminal's edge folds names."""
    columns = [name for name in rows[0] if name not in _LEFT_OUT]
    columns = [name for name in columns if any(row[name] is not None for row in rows)]
    cells = {name: [_shown(problem, name, row) for row in rows] for name in columns}
    widths = {name: max(map(cell_len, (_title(name), *own))) for name, own in cells.items()}
    if not stdout.is_terminal:
        print_table(_table(cells))
        return
    without: list[str] = []
    least = {n: min(w, _NAME_WIDTH) if n in _NAMES else w for n, w in widths.items()}
    for name in _SPARED:
        if _width(least) > stdout.width and name in cells:
            del cells[name], least[name]
            without.append(_title(name))
    stdout.print(_table(cells))
    if without:
        stdout.print(f"left out for want of width: {', '.join(without)} (--json has all)")


def _title(column: str) -> str:
    return column.replace("_", " ")


def _width(columns: Mapping[str, int]) -> int:
    """Return the width of a table with the widths of ``columns``: two blanks and a line each."""
    return 1 + sum(width + 3 for width in columns.values())


def _table(cells: Mapping[str, Sequence[str]]) -> Table:
    table = Table()
    for column in cells:
        table.add_column(_title(column), overflow="fold", no_wrap=column not in _NAMES)
    for row in zip(*cells.values(), strict=True):
        table.add_row(*map(escape, row))
    return table


def _shown(problem: Problem, column: str, row: Mapping[str, Any]) -> str:
    value = row[column]
    if value is None:
        return ""
    if column in ("default", "answer"):
        mark = " (override)" if column == "answer" and row.get("overridden") else ""
        return problem.word(value) + mark
    return f"{value:+.3f}" if isinstance(value, float) else str(value)
