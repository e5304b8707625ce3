"""``nestor workload measure``: what programs execute under policies."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal

import tyro
from rich.markup import escape
from rich.table import Table

from nestor.change import interval_text
from nestor.cli.console import (
    counted,
    json_text,
    percent,
    print_json,
    print_table,
    stdout,
    width_of,
)
from nestor.cli.options import OutputFolder, refuse_idle
from nestor.cli.policies.builds import chosen_build, overrides_text, policies_beside
from nestor.cli.policies.failures import show_failures
from nestor.cli.setup import corpus_for, programs_named, ready_pool
from nestor.compiler.cache import cache_place
from nestor.compiler.invocation import LtoKind
from nestor.errors import NestorError
from nestor.files import write_atomically
from nestor.problem.registry import find_problem
from nestor.rollout.local_pool import PoolSettings
from nestor.rollout.stock import StockKeepingPool
from nestor.workload.counts import RUN_COLUMNS

if TYPE_CHECKING:  # 'nestor workload measure --help' starts without what reads objects
    from nestor.evaluate.workloads import WorkloadEvaluation, WorkloadResult

DEFAULT_PROBLEM: Final = "regalloc-eviction"
"""Workloads are for problems of speed."""


@dataclass(frozen=True)
class Measure:
    r"""Run programs on their workloads under callgrind, stock and under policies, and compare.

    J is what the run executed: instructions + data reads + data writes, of the whole process. It
    is a count and no time: the same binary gives the same J on the same machine, and where a
    program does not repeat itself the table says how far two runs of stock are apart (noise). Every
    build must leave the same output and files as stock. Beside J stand the columns of the problem,
    over all modules, such as static cost and spills, and the bytes of code of the program; --json
    has those too that the table has no room for.

    The programs judged are those of the split "test", worst first. The interval of the mean is a
    bootstrap over projects. Measurements are kept by the content of the binary and its inputs: a
    command that was interrupted goes on where it was, and equal builds are measured once. Runs the
    programs of the corpus (foreign code). The exit status is 1 if anything failed.

    Examples:
        nestor workload measure --policy default my.safetensors --corpus corpus/speed-cg
        nestor workload measure --policy my.safetensors --corpus corpus/speed-pgo --split all \
            --out results/my --json
        nestor workload measure --policy my.safetensors --corpus corpus/speed-cg --program lua
        nestor workload measure --policy shipped-eviction --also shipped-priority \
            --corpus corpus/speed-pgo
    """

    policy: tuple[str, ...]
    """Policy files or built-ins of the problem."""
    corpus: Path
    """A corpus with workloads, such as the tier speed or a codegen corpus made of it."""
    also: tuple[str, ...] = ()
    """Policies about other decisions, one for each, that stand beside each policy."""
    problem: str = DEFAULT_PROBLEM
    """The problem that the policies decide."""
    split: Literal["train", "validation", "test", "all"] | None = None
    """Which projects to judge by (default: held-out ones)."""
    program: tuple[str, ...] = ()
    """Programs, by their names or the last parts of them (default: all of the split)."""
    overrides: Path | None = None
    """Answers that stand above the policies' (docs/reference/formats.md)."""
    lto: LtoKind | None = None
    """Link by LTO of this kind, the policies deciding inside the linker."""
    out: OutputFolder | None = None
    """Folder for the measurements and result.json (default: the cache, and no result.json)."""
    fresh: bool = False
    """Compile the stock side again instead of using stock objects of an earlier command."""
    pool: tyro.conf.OmitArgPrefixes[PoolSettings] = field(default_factory=PoolSettings)
    """How compilers and the measured programs run."""
    llvm: str | None = None
    """LLVM to use: a prefix or a clang."""
    json: bool = False
    """Print JSON."""

    def run(self) -> int:
        """Measure and print; 1 if anything failed, which is printed last."""
        from nestor.evaluate.compare import select_programs
        from nestor.evaluate.workloads import measure_workloads, require_workloads

        problem = find_problem(self.problem)
        policies = [problem.policy(name) for name in dict.fromkeys(self.policy)]
        if not policies:
            raise NestorError("Nothing to measure: name a policy.")
        if self.program:
            refuse_idle(self, "with --program", "split")
        also = policies_beside(problem, self.also)
        overrides = overrides_text(problem, self.overrides)
        build = chosen_build(problem, None, self.lto)
        corpus = corpus_for(problem, self.corpus, policies)
        named = programs_named(corpus, self.program)
        programs = require_workloads(corpus, named or select_programs(corpus, self.split))
        folder = self.out or Path(cache_place()) / "measurements"
        with ready_pool(problem, corpus, self.llvm, self.pool) as (pool, report):
            keeping = StockKeepingPool(pool, fresh=self.fresh)
            results = measure_workloads(
                keeping,
                programs,
                policies,
                folder,
                also=also,
                overrides=overrides,
                build=build.name,
                progress=report,
            )
        data = {"workloads": [result.to_json() for result in results]}
        if self.out is not None:
            write_atomically(self.out / "result.json", json_text(data))
        if self.json:
            print_json(data)
        else:
            for result in results:
                show(result)
        return show_failures([failure for result in results for failure in result.failures])


def show(result: "WorkloadEvaluation") -> None:
    """Print one policy's table and its totals."""
    others = _other_columns(result.programs)
    table = _table(result, others)
    left_out: list[str] = []
    while others and stdout.is_terminal and width_of(table) > stdout.width:
        left_out.insert(0, others.pop())
        table = _table(result, others)
    print_table(table)
    if left_out:
        stdout.print(f"left out for want of width: {', '.join(left_out)} (--json has all)")
    total = result.total()
    if not total["programs"]:
        stdout.print("no program could be compared")
        return
    stdout.print(
        f"{counted(total['programs'], 'program')}: J mean {percent(total['mean_pct'])}"
        f" (95 % interval by project {interval_text(total['ci95'])}),"
        f" median {percent(total['median_pct'])},"
        f" worst {percent(total['worst_pct'])}, best {percent(total['best_pct'])},"
        f" {counted(len(result.failures), 'failure')}",
        soft_wrap=True,
    )


def _table(result: "WorkloadEvaluation", others: "Sequence[str]") -> Table:
    """Return a row for every program, with columns of its run and ``others`` of its build."""
    table = Table(
        title=f"{escape(result.policy)} against stock, workloads: change of what was executed (J ="
        " instructions + reads + writes) and of the build"
    )
    table.add_column("program", no_wrap=True)
    table.add_column("split")
    for name in ("stock J", *RUN_COLUMNS, *others, "noise"):
        table.add_column(name.replace("_", " "), justify="right")
    for row in result.programs:
        table.add_row(
            escape(row.name),
            row.split,
            f"{row.stock[RUN_COLUMNS[0]]:,.0f}" if row.stock else percent(None),
            *(percent(row.change_pct(column)) for column in RUN_COLUMNS),
            *(_other(row, column) for column in others),
            f"{row.noise_pct:.3f} %" if row.noise_pct else "",
        )
    return table


def _other_columns(rows: "Sequence[WorkloadResult]") -> list[str]:
    """Return the columns of the builds that a table has room for, in their order."""
    found = dict.fromkeys(column for row in rows for column in row.stock or {})
    return [c for c in found if c not in RUN_COLUMNS and not c.startswith("static_")]


def _other(row: "WorkloadResult", column: str) -> str:
    change = row.change_pct(column)
    return "" if change is None else percent(change)
