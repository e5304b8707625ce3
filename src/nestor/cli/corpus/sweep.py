"""``nestor corpus sweep``: time one stock compilation of a corpus."""

from dataclasses import dataclass, field
from pathlib import Path

import tyro
from rich.markup import escape

from nestor.cli.console import counted, print_json, stdout
from nestor.cli.setup import DEFAULT_PROBLEM, ready_pool
from nestor.corpus import store
from nestor.evaluate.sweep import Sweep as SweepResult
from nestor.evaluate.sweep import sweep
from nestor.problem.registry import find_problem
from nestor.rollout.local_pool import PoolSettings


@dataclass(frozen=True)
class Sweep:
    """Compile every module of a corpus once with the stock compiler, and show what it costs.

    Nothing is kept, and nothing is taken from the cache.

    Examples:
        nestor corpus sweep corpus/bench
        nestor corpus sweep corpus/bench --jobs 1 --json
    """

    directory: tyro.conf.Positional[Path]
    """The corpus."""
    pool: tyro.conf.OmitArgPrefixes[PoolSettings] = field(default_factory=PoolSettings)
    """How compilers run."""
    llvm: str | None = None
    """LLVM to use: a prefix or a clang."""
    json: bool = False
    """Print as JSON."""

    def run(self) -> int:
        """Compile and print; 1 if a module failed."""
        corpus = store.load(self.directory)
        # Stock compiles need a pool but decide nothing.
        problem = find_problem(DEFAULT_PROBLEM)
        with ready_pool(problem, corpus, self.llvm, self.pool) as (pool, report):
            result = sweep(pool, corpus.modules, report)
        if self.json:
            print_json(result.to_json())
        else:
            _show_sweep(result)
        return 1 if result.failures else 0


def _show_sweep(result: SweepResult) -> None:
    """Print a sweep."""
    for name, reason in result.failures:
        stdout.print(f"[red]failed[/red] {escape(name)}: {escape(reason)}")
    slowest = ", ".join(f"{name} {seconds:.1f} s" for name, seconds in result.slowest)
    stdout.print(
        f"{counted(result.modules, 'module')}, {counted(len(result.failures), 'failure')},"
        f" {counted(result.jobs, 'job')}: "
        f"{result.cpu_seconds:.1f} CPU seconds, {result.wall_seconds:.1f} seconds, "
        f"{result.modules_per_second:.1f} modules a second, peak {result.peak_mib:.0f} MiB\n"
        f"slowest: {escape(slowest)}"
    )
