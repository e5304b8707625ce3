"""``nestor evaluate``: what policies do to programs."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import tyro
from rich.markup import escape
from rich.table import Table

from nestor.change import interval_text
from nestor.cli.console import counted, percent, print_json, stdout
from nestor.cli.options import refuse_idle
from nestor.cli.policies.builds import (
    check_summary,
    chosen_build,
    overrides_text,
    remark_on_build,
)
from nestor.cli.policies.failures import show_failures
from nestor.cli.setup import DEFAULT_PROBLEM, corpus_for, programs_named, ready_pool
from nestor.compiler.invocation import LtoKind
from nestor.errors import NestorError
from nestor.evaluate.compare import EvaluateSettings, evaluate, select_programs
from nestor.evaluate.groups import Group, groups
from nestor.evaluate.result import Evaluation, Outcome, ProgramResult
from nestor.problem.registry import find_problem
from nestor.problem.score import Report
from nestor.rollout.local_pool import PoolSettings
from nestor.rollout.stock import StockKeepingPool


@dataclass(frozen=True)
class Evaluate:
    r"""Build a corpus's programs stock and under policies, and compare what they come to.

    For problems of size, that is loadable bytes of the linked program: text, rodata, eh_frame,
    eh_frame_hdr and gcc_except_table. The programs judged are those of projects that training
    never saw (the split "test"), or all of them in a corpus without splits. Worst regressions come
    first. The interval is a paired bootstrap over projects. The exit status is 1 if anything could
    not be compiled, linked or run; what failed is printed last, on standard error.

    Geometric means by language and style follow, over the programs that are not tiny (see
    --least-bytes). A style of C++ is seen if a project of the split "train" has it. With several
    policies or modes these means are all that is shown, if there are any; --json holds every
    program.

    What stock makes of a module is kept in the cache: a second policy is judged without compiling
    it again. Under LTO, and where register allocation is decided, stock is compiled each time.

    Built-in policies of inlining-size: shipped, shipped-lto and distilled-lto (for --lto),
    distilled (reads a --summary), default, never, always, threshold:N (docs/studies/policies.md)
    and mlgo2020 (published in 2020 for LLVM 11).

    Examples:
        nestor evaluate --policy shipped --corpus corpus/tiny
        nestor evaluate --policy shipped mlgo2020 --mode gc no-gc icf \
            --corpus corpus/bench --smoke
        nestor evaluate --policy threshold:15 --corpus corpus/tiny --split all --json
        nestor evaluate --policy shipped-lto --corpus corpus/bench --lto full --program ninja parse
    """

    policy: tuple[str, ...]
    """Policy files or built-ins."""
    corpus: Path
    """A corpus with programs."""
    problem: str = DEFAULT_PROBLEM
    """The problem that the policies decide."""
    split: Literal["train", "validation", "test", "all"] | None = None
    """Which projects to judge by (default: held-out ones)."""
    program: tuple[str, ...] = ()
    """Programs, by their names or the last parts of them (default: all of the split)."""
    build: str | None = None
    """How programs are built (default: the problem's usual way): for inlining for size link,
    full-lto, thin-lto or copies, for speed run, full-lto or thin-lto, for register allocation
    objects."""
    lto: LtoKind | None = None
    """Link by LTO, the policies deciding inside the linker, and compare with stock LTO."""
    mode: tuple[str, ...] = ()
    """How to link: drop unused sections (gc, the default), keep them (no-gc), or also merge equal
    functions (icf)."""
    overrides: Path | None = None
    """Answers that stand above the policies' (docs/reference/formats.md)."""
    summary: bool = False
    """Give policies that read one a summary of the rest of the program."""
    smoke: bool = False
    """Run the programs' smoke tests, stock and under the policies: executes the corpus's code."""
    fresh: bool = False
    """Compile the stock side again, beside the policies: it measures what they cost in compile
    time. Without it stock objects of an earlier evaluation are used."""
    least_bytes: float | None = None
    """Score of a stock program from which on it counts in a group's mean (default: the problem's,
    80,000 bytes for sizes)."""
    pool: tyro.conf.OmitArgPrefixes[PoolSettings] = field(default_factory=PoolSettings)
    """How compilers run."""
    llvm: str | None = None
    """LLVM to use: a prefix or a clang."""
    json: bool = False
    """Print JSON."""

    def run(self) -> int:
        """Evaluate and print; 1 if anything failed, which is printed last."""
        problem = find_problem(self.problem)
        policies = [problem.policy(name) for name in dict.fromkeys(self.policy)]
        if not policies:
            raise NestorError("Nothing to evaluate: name a policy.")
        if self.program:
            refuse_idle(self, "with --program", "split")
        build = chosen_build(problem, self.build, self.lto)
        check_summary(build, self.summary)
        remark_on_build(build, self.policy)
        modes = tuple(dict.fromkeys(self.mode)) or build.modes[:1]
        overrides = overrides_text(problem, self.overrides)
        settings = EvaluateSettings(modes, overrides, self.summary, self.smoke)
        corpus = corpus_for(problem, self.corpus, policies)
        programs = programs_named(corpus, self.program) or select_programs(corpus, self.split)
        with ready_pool(problem, corpus, self.llvm, self.pool) as (pool, report):
            keeping = StockKeepingPool(pool, fresh=self.fresh)
            results = evaluate(keeping, build, programs, policies, settings, report)
        least = problem.report.least if self.least_bytes is None else self.least_bytes
        grouped = groups(results, least)
        if self.json:
            print_json(
                {
                    "evaluations": [result.to_json() for result in results],
                    "groups": [group.to_json() for group in grouped],
                }
            )
        elif len(results) == 1 or not grouped:
            for result in results:
                show(result)
            for group in grouped:
                numbers = ", ".join(_parts(group))
                stdout.print(
                    f"{escape(group.name)}, from {least:,.0f} {problem.report.unit}: {numbers}",
                    soft_wrap=True,
                )
            if not grouped:
                stdout.print(
                    f"No program has at least {least:,.0f} {problem.report.unit}: no means by"
                    " group are shown (--least-bytes sets from which size on a program counts).",
                    soft_wrap=True,
                )
        else:
            show_groups(grouped, modes, least, problem.report)
            for result in results:
                stdout.print(f"{escape(result.policy)}, {result.mode}:", end=" ")
                _show_costs(result)
        return show_failures([failure for result in results for failure in result.failures])


def show_groups(
    grouped: Sequence[Group], modes: Sequence[str], least: float, report: Report
) -> None:
    """Print a row for every group and policy and a column for every mode."""
    detail = "".join(f", that of {column}" for column in report.detail)
    table = Table(
        title=f"{report.score} {report.unit} against stock: geometric mean over the programs of at"
        f" least {least:,.0f} {report.unit}{detail}, and the worst program"
    )
    for column in ("programs", "policy", *modes):
        table.add_column(column, overflow="fold")
    cells = {(g.name, g.policy, g.mode): "\n".join(_parts(g)) for g in grouped}
    rows = list(dict.fromkeys((g.name, g.policy) for g in grouped))
    for (name, policy), (following, _) in zip(rows, [*rows[1:], ("", "")], strict=True):
        numbers = (cells[name, policy, mode] for mode in modes)
        table.add_row(escape(name), escape(policy), *numbers, end_section=name != following)
    stdout.print(table)


def _parts(group: Group) -> list[str]:
    """Return a group's numbers; its failures are never left out."""
    parts = []
    report = group.report
    if group.worst is not None:
        parts = [
            f"{percent(group.geomean_pct[report.score])} of {group.programs}",
            *(f"{column} {percent(group.geomean_pct[column])}" for column in report.detail),
            f"worst {percent(group.worst.change_pct)}"
            f" {escape(group.worst.name.rpartition('/')[2])}",
        ]
    return [*parts, f"[bold red]{len(group.failed)} failed[/]"] if group.failed else parts


def show(result: Evaluation) -> None:
    """Print an evaluation as a table."""
    report = result.report
    mode = f", {report.mode} {result.mode}" if report.mode else ""
    table = Table(title=f"{escape(result.policy)} against stock, {report.quantity}{mode}")
    for name in ("program", "project", "stock", "policy", *report.columns):
        table.add_column(name, justify="left" if name in ("program", "project") else "right")
    for row in result.programs:
        table.add_row(
            escape(row.name.rsplit("/", 1)[-1]),
            escape(row.project),
            *(_score(side, report) for side in (row.stock, row.policy)),
            *(_change(row, column) for column in report.columns),
        )
    stdout.print(table)
    total = result.total()
    if total[f"{report.score}_geomean_pct"] is not None:
        others = "".join(
            f", {column} {percent(total[f'{column}_change_pct'])}"
            for column in report.columns
            if column != report.score and column not in report.detail
        )
        stdout.print(
            f"total {report.score} {percent(total[f'{report.score}_change_pct'])}"
            f" (95 % interval by project {interval_text(total['ci95'])}),"
            f" geometric mean {percent(total[f'{report.score}_geomean_pct'])}{others}",
            soft_wrap=True,
        )
    _show_costs(result)


def _change(row: ProgramResult, column: str) -> str:
    change = row.column_change_pct(column)
    return "" if change is None and column != row.report.score else percent(change)


def _score(side: Outcome | None, report: Report) -> str:
    if side is None:
        return "[bold red]failed[/]"
    return f"{side.columns[report.score]:,.{report.decimals}f}"


def _show_costs(result: Evaluation) -> None:
    """Print what the policy cost, and how much failed."""
    ratio = "not measured"
    if result.compile_cpu_ratio is not None:
        ratio = f"{result.compile_cpu_ratio:.3f}× of stock"
    elif any(result.compared()):
        ratio += " (stock objects of an earlier run: --fresh compiles them again)"
    remarks = "".join(
        f", {counted(len(units), 'module')} {remark.words}"
        for remark in result.report.remarks
        if (units := result.remarks.get(remark.key))
    )
    tests = result.smoke
    smoke = (
        f", smoke tests: {tests.passed} passed, {tests.failed} failed, {tests.without} not run"
        if tests
        else ""
    )
    stdout.print(
        f"compile CPU {ratio}, {counted(result.decisions, 'decision')},"
        f" {counted(len(result.failures), 'failure')}{remarks}{smoke}",
        soft_wrap=True,
    )
