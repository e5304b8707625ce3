"""``nestor corpus overlap``: do held-out projects share code with training?"""

from dataclasses import dataclass, field
from pathlib import Path

import tyro
from rich.box import SIMPLE
from rich.markup import escape
from rich.table import Table

from nestor.cli.console import print_json, progress, stdout
from nestor.cli.setup import DEFAULT_PROBLEM, ready_plugin
from nestor.corpus import store
from nestor.errors import NestorError
from nestor.evaluate.copies.overlap import Compiled, overlap
from nestor.evaluate.copies.overlap import Overlap as OverlapResult
from nestor.problem.registry import find_problem
from nestor.rollout.cache import baselines
from nestor.rollout.local_pool import LocalPool, PoolSettings


@dataclass(frozen=True)
class Overlap:
    """Check that held-out projects share no code with training, by the hash of each function.

    Functions of 64 bytes and more are compared as the stock compiler makes them, relocations
    masked; templates of the standard library do not count. A project of the split validation or
    test may have 1 % of its code in common with training. Several corpora are compared as if they
    were one.

    Examples:
        nestor corpus overlap corpus/bench
        nestor corpus overlap corpus/bench corpus/fresh
    """

    directory: tyro.conf.Positional[tuple[Path, ...]]
    """The corpus, or several."""
    pool: tyro.conf.OmitArgPrefixes[PoolSettings] = field(default_factory=PoolSettings)
    """How compilers run."""
    llvm: str | None = None
    """LLVM to use: a prefix or a clang."""
    json: bool = False
    """Print as JSON."""

    def run(self) -> int:
        """Compare and print; 1 if a held-out project shares too much."""
        corpora = [store.load(directory) for directory in self.directory]
        if not corpora:
            raise NestorError("Nothing to compare: name a corpus.")
        # Stock compiles need a pool but decide nothing.
        problem = find_problem(DEFAULT_PROBLEM)
        with progress() as report:
            plugin = ready_plugin(problem, self.llvm, report)
            compiled = []
            for corpus in corpora:
                with LocalPool(problem, corpus, plugin, self.pool) as pool:
                    objects = baselines(pool, corpus.modules, None, report)
                compiled.append(Compiled(corpus, objects))
            result = overlap(compiled, report)
        if self.json:
            print_json(result.to_json())
        else:
            _show_overlap(result)
        return 0 if result.ok else 1


def _show_overlap(result: OverlapResult) -> None:
    """Print the held-out projects, then the pairs that share code."""
    table = Table("project", "split", box=SIMPLE)
    for column in ("functions", "bytes", "in training", "share"):
        table.add_column(column, justify="right")
    for project in result.projects:
        table.add_row(
            project.project,
            project.split,
            str(project.functions),
            f"{project.bytes:,}",
            f"{project.shared_bytes:,}",
            f"{project.shared_pct:.2f} %",
        )
    stdout.print(table)
    for pair in result.pairs:
        stdout.print(
            f"{pair.project} ({pair.split}) and {pair.other} ({pair.other_split}): "
            f"{pair.bytes:,} bytes in {pair.functions} functions, as {escape(pair.examples[0])}"
        )
    for name in result.unread:
        stdout.print(f"[red]no object[/red] {escape(name)}")
    verdict = "no held-out project shares" if result.ok else "[red]a held-out project shares[/red]"
    stdout.print(f"{verdict} more than 1 % of its code with training")
