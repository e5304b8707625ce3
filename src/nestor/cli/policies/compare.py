"""``nestor compare``: training runs side by side."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

import tyro
from rich.markup import escape
from rich.table import Table

from nestor.change import interval_text
from nestor.cli.console import json_text, percent, print_json, stdout
from nestor.cli.options import OutputFile, refuse_idle
from nestor.cli.policies.builds import chosen_build
from nestor.cli.setup import DEFAULT_PROBLEM, corpus_for, ready_pool
from nestor.evaluate.compare import evaluate, select_programs
from nestor.evaluate.compare_runs import (
    EVALUATION,
    Learner,
    TrainingRun,
    compare,
    read_run,
    to_csv,
    to_json,
)
from nestor.files import write_atomically
from nestor.problem.registry import find_problem
from nestor.rollout.local_pool import PoolSettings
from nestor.rollout.stock import StockKeepingPool


@dataclass(frozen=True)
class Compare:
    """Set training runs side by side: final sizes with intervals, and curves against their cost.

    Runs that differ in their seed alone are one row; its interval is over seeds and projects. With
    --corpus, policies that have not been evaluated are, on held-out programs, and the result is
    kept in the run's folder (evaluation.json, as 'nestor evaluate --json' writes it). Runs that
    are still going are shown as far as they are; TensorBoard shows all of their curves:
    'tensorboard --logdir runs'.

    Examples:
        nestor compare runs/ppo-0 runs/ppo-1 runs/ppo-2 runs/dqn-0 --corpus corpus/bench
        nestor compare runs/* --csv curves.csv --page runs.html
    """

    runs: tyro.conf.Positional[tuple[Path, ...]]
    """Folders of 'nestor train'."""
    corpus: Path | None = None
    """The corpus on whose programs policies are judged that were not yet."""
    problem: str = DEFAULT_PROBLEM
    """The problem that the runs' policies decide."""
    split: Literal["train", "validation", "test", "all"] | None = None
    """Which projects to judge by (default: held-out ones)."""
    csv: OutputFile | None = None
    """Write the curves there."""
    page: OutputFile | None = None
    """Write a page with curves, bars and tables there: one HTML file without a server."""
    tables: tuple[Path, ...] = ()
    """Files of recorded tables for the page, such as that of an ablation."""
    points: int = 10
    """Of each curve."""
    pool: tyro.conf.OmitArgPrefixes[PoolSettings] = field(default_factory=PoolSettings)
    """How compilers run."""
    llvm: str | None = None
    """LLVM to use: a prefix or a clang."""
    json: bool = False
    """Print JSON."""

    def run(self) -> int:
        """Evaluate what is not evaluated, compare and print."""
        if self.corpus is None:
            refuse_idle(self, "without --corpus", "problem", "split")
        if self.page is None:
            refuse_idle(self, "without --page", "tables")
        runs = [read_run(folder) for folder in dict.fromkeys(self.runs)]
        if self.corpus is not None:
            runs = self._evaluated(runs, self.corpus)
        learners = compare(runs, max(1, self.points))
        if self.csv is not None:
            write_atomically(self.csv, to_csv(learners))
        if self.page is not None:
            from nestor.cli.policies.compare_page import compare_page

            write_atomically(self.page, compare_page(runs, learners, self.tables))
        if self.json:
            print_json(to_json(learners))
        else:
            show(learners)
        return 0

    def _evaluated(self, runs: Sequence[TrainingRun], corpus_folder: Path) -> list[TrainingRun]:
        """Return the runs, those that have a policy and no evaluation with one."""
        todo = [
            run.folder
            for run in runs
            if not run.finals and (run.folder / "policy.safetensors").exists()
        ]
        if not todo:
            return list(runs)
        problem = find_problem(self.problem)
        build = chosen_build(problem, None)
        policies = [problem.policy(str(folder / "policy.safetensors")) for folder in todo]
        corpus = corpus_for(problem, corpus_folder, policies)
        programs = select_programs(corpus, self.split)
        # Equal policies, two that never deviate say, are judged once.
        distinct = list({policy.digest: policy for policy in policies}.values())
        with ready_pool(problem, corpus, self.llvm, self.pool) as (pool, report):
            keeping = StockKeepingPool(pool)
            results = evaluate(keeping, build, programs, distinct, progress=report)
        found = {p.digest: r for p, r in zip(distinct, results, strict=True)}
        for folder, policy in zip(todo, policies, strict=True):
            result = replace(found[policy.digest], policy=policy.name)
            text = json_text({"evaluations": [result.to_json()], "groups": []})
            write_atomically(folder / EVALUATION, text)
        return [read_run(run.folder) for run in runs]


def show(learners: Sequence[Learner]) -> None:
    """Print the final sizes and the curves."""
    table = Table(title="linked bytes against stock: geometric mean over programs, mean over seeds")
    left = ("learner",)
    columns = ("learner", "seeds", "linked", "95 % interval", "worst", "compiles", "CPU-min", "own")
    for name in columns:
        table.add_column(name, justify="left" if name in left else "right", overflow="fold")
    for row in learners:
        minutes = row.measured_minutes if row.cpu_minutes is None else row.cpu_minutes
        table.add_row(
            escape(row.name),
            str(len(row.seeds)),
            percent(row.change_pct) if row.change_pct is not None else "not evaluated",
            interval_text(row.interval) if row.interval else "",
            f"{escape(row.worst[0].rpartition('/')[2])} {percent(row.worst[1])}"
            if row.worst
            else "",
            f"{row.compiles:,.0f}",
            f"{minutes:.1f}",
            f"{row.overhead_pct:.0f} %",
        )
    stdout.print(table)
    for row in learners:
        if row.failures:
            stdout.print(f"{escape(row.name)}: [bold red]{row.failures} failures[/] in evaluation")
    for row in (row for row in learners if row.curve):
        stdout.print(f"\n{escape(row.name)}: training objective", soft_wrap=True)
        stdout.print("  compiles  CPU-min     change")
        for point in row.curve:
            stdout.print(
                f"{point.compiles:>10,} {point.cpu_minutes:>8.2f} {point.change_pct:>+9.2f} %"
            )
