"""``nestor workload time``: how long programs take under policies."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

import tyro
from rich.markup import escape
from rich.table import Table

from nestor.change import interval_text
from nestor.cli.console import counted, print_json, stdout
from nestor.cli.options import refuse_idle
from nestor.cli.policies.builds import chosen_build, overrides_text
from nestor.cli.policies.failures import show_failures
from nestor.cli.setup import corpus_for, programs_named, ready_pool
from nestor.cli.workload.measure import DEFAULT_PROBLEM
from nestor.compiler.invocation import LtoKind
from nestor.errors import NestorError
from nestor.problem.registry import find_problem
from nestor.processor import measuring_core
from nestor.rollout.local_pool import PoolSettings
from nestor.rollout.stock import StockKeepingPool
from nestor.workload.timing import NULL, STOCK, Clock, Timing


@dataclass(frozen=True)
class Time:
    r"""Time programs on their workloads, stock and under policies, against stock's own noise.

    Each round runs stock, stock again and every policy's build once, in changing order, pinned to
    one processor. "stock again" is the same binary: an effect that is not larger than what stock
    differs from itself by is called "not resolved". The table has the change of the shortest times,
    of the medians, and the bootstrap interval of the latter over rounds. Use a quiet machine. Runs
    the programs of the corpus (foreign code).

    Examples:
        nestor workload time --policy my.safetensors --corpus corpus/speed-cg
        nestor workload time --policy my.safetensors --corpus corpus/speed-cg --rounds 40 \
            --program lua sqlite3 --core 1
        nestor workload time --problem inlining-speed --policy default --overrides \
            tuned/app/overrides.txt --corpus corpus/app --program app
    """

    policy: tuple[str, ...]
    """Policy files or built-ins of the problem."""
    corpus: Path
    """A corpus with workloads."""
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
    rounds: int = 15
    """Runs of each build."""
    core: int | None = None
    """The processor to pin the runs to (default: the last one that this process may use)."""
    clock: Clock = "wall"
    """What is compared: time on the wall, or CPU time of the process."""
    pool: tyro.conf.OmitArgPrefixes[PoolSettings] = field(default_factory=PoolSettings)
    """How compilers run."""
    llvm: str | None = None
    """LLVM to use: a prefix or a clang."""
    json: bool = False
    """Print JSON."""

    def run(self) -> int:
        """Time and print; 1 if anything failed, which is printed last."""
        from nestor.evaluate.compare import select_programs
        from nestor.evaluate.workload_times import time_programs
        from nestor.evaluate.workloads import require_workloads

        problem = find_problem(self.problem)
        policies = [problem.policy(name) for name in dict.fromkeys(self.policy)]
        if not policies:
            raise NestorError("Nothing to time: name a policy.")
        if self.rounds < 3:
            raise NestorError("Too few rounds for an interval: --rounds takes 3 or more.")
        if self.program:
            refuse_idle(self, "with --program", "split")
        core = measuring_core(self.core)
        overrides = overrides_text(problem, self.overrides)
        build = chosen_build(problem, None, self.lto)
        corpus = corpus_for(problem, self.corpus, policies)
        named = programs_named(corpus, self.program)
        programs = require_workloads(corpus, named or select_programs(corpus, self.split))
        with ready_pool(problem, corpus, self.llvm, self.pool) as (pool, report):
            timings, failures = time_programs(
                StockKeepingPool(pool), programs, policies,
                rounds=self.rounds, core=core, clock=self.clock, overrides=overrides,
                build=build.name, progress=report,
            )  # fmt: skip
        projects = {program.name: program.project for program in programs}
        names = [policy.name for policy in policies]
        if self.json:
            print_json(
                {
                    "programs": [_json(timing) for timing in timings],
                    "means": {name: _mean(timings, name, projects) for name in (*names, NULL)},
                    "failures": [asdict(failure) for failure in failures],
                }
            )
        else:
            _show(timings, names, projects)
        return show_failures(failures)


def _json(timing: Timing) -> dict[str, Any]:
    builds = [name for name in timing.seconds if name != STOCK]
    return {
        **asdict(timing),
        "effects": {name: asdict(timing.effect(name)) for name in builds},
        "resolved": {name: timing.is_resolved(name) for name in builds if name != NULL},
    }


def _mean(
    timings: Sequence[Timing], build: str, projects: Mapping[str, str]
) -> dict[str, Any] | None:
    """Return the mean over programs of the change of the medians, and its interval by project."""
    there = [timing for timing in timings if build in timing.seconds]
    if not there:
        return None
    changes = [timing.effect(build).of_medians for timing in there]
    from nestor.evaluate.statistics import mean_interval

    groups = [projects[timing.program] for timing in there]
    ends = list(mean_interval(groups, changes)) if len(set(groups)) > 1 else None
    return {"mean_pct": sum(changes) / len(changes), "ci95": ends, "programs": len(changes)}


def _show(timings: Sequence[Timing], policies: Sequence[str], projects: Mapping[str, str]) -> None:
    table = Table(title="Times against stock: minima, medians (95 % interval over rounds)")
    for name in ("program", "stock, s", "build", "minima", "medians", "interval", ""):
        table.add_column(name, justify="left" if name in ("program", "build", "") else "right")
    for timing in timings:
        for build in (NULL, *(name for name in policies if name in timing.seconds)):
            effect = timing.effect(build)
            verdict = "" if build == NULL or timing.is_resolved(build) else "not resolved"
            table.add_row(
                escape(timing.program) if build == NULL else "",
                f"{min(timing.seconds[STOCK]):.4f}" if build == NULL else "",
                escape(build),
                f"{effect.of_minima:+.2f} %",
                f"{effect.of_medians:+.2f} %",
                f"{effect.low:+.2f} … {effect.high:+.2f}",
                verdict,
            )
    stdout.print(table)
    for name in (NULL, *policies):
        mean = _mean(timings, name, projects)
        if mean is not None:
            stdout.print(
                f"{escape(name)}: mean {mean['mean_pct']:+.2f} % of"
                f" {counted(mean['programs'], 'program')}"
                f" (95 % interval by project {interval_text(mean['ci95'])})",
                soft_wrap=True,
            )
