"""``nestor guard``: a list of modules to leave to stock, so that no program grows."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import tyro
from rich.markup import escape
from rich.table import Table

from nestor.change import change_pct
from nestor.cli.console import counted, percent, print_json, stdout
from nestor.cli.options import OutputFile
from nestor.cli.policies.builds import check_summary, chosen_build, remark_on_build
from nestor.cli.setup import DEFAULT_PROBLEM, corpus_for, programs_named, ready_pool
from nestor.compiler.invocation import LtoKind
from nestor.evaluate.compare import select_programs
from nestor.evaluate.guard import Guard as Guarding
from nestor.evaluate.guard import Guarded, guard
from nestor.files import write_atomically
from nestor.policy.names import NamedPolicy
from nestor.problem.problem import Problem
from nestor.problem.registry import find_problem
from nestor.problem.score import Report
from nestor.rollout.local_pool import PoolSettings


@dataclass(frozen=True)
class Guard:
    r"""Find the modules that a policy makes larger where it counts, and list them as overrides.

    With the list, no program is larger than stock in any of the link modes. Its lines say
    "module … stock"; 'nestor build', 'nestor flags' and 'nestor clang' take it as --overrides, so
    it is made once and kept beside the source. One list serves all programs that it was made
    with; modules whose source files have the same name go back to stock together.

    Examples:
        nestor guard --corpus corpus/tiny --policy mlgo2020 --out guard.txt
        nestor guard --corpus corpus/tiny --policy mlgo2020 --out lz4.txt --program lz4 --mode gc
        nestor guard --corpus corpus/bench --policy distilled --out ninja.txt --program ninja \
            --lto full --mode gc
    """

    corpus: Path
    """A corpus with programs."""
    policy: str
    """A policy file or a built-in."""
    out: OutputFile
    """The overrides file to write."""
    problem: str = DEFAULT_PROBLEM
    """The problem that the policy decides."""
    program: tuple[str, ...] = ()
    """Programs, by their names or the last parts of them (default: all of the split)."""
    split: Literal["train", "validation", "test", "all"] | None = None
    """Which projects (default: held-out ones)."""
    mode: tuple[str, ...] = ()
    """The modes of the build in which no program may grow (default: all)."""
    build: str | None = None
    """How programs are built: link, full-lto or thin-lto (default: the problem's usual way)."""
    lto: LtoKind | None = None
    """Compare with stock LTO of this kind; under full LTO a program goes back as a whole."""
    summary: bool = False
    """Give a policy that reads one a summary of the rest of the program."""
    pool: tyro.conf.OmitArgPrefixes[PoolSettings] = field(default_factory=PoolSettings)
    """How compilers run."""
    llvm: str | None = None
    """LLVM to use: a prefix or a clang."""
    json: bool = False
    """Print JSON."""

    def run(self) -> int:
        """Guard, write the list and print; nothing is written if a program cannot be built."""
        problem = find_problem(self.problem)
        build = chosen_build(problem, self.build, self.lto)
        check_summary(build, self.summary)
        remark_on_build(build, [self.policy])
        policy = problem.policy(self.policy)
        modes = tuple(dict.fromkeys(self.mode)) or build.modes
        corpus = corpus_for(problem, self.corpus, [policy])
        programs = programs_named(corpus, self.program) or select_programs(corpus, self.split)
        with ready_pool(problem, corpus, self.llvm, self.pool) as (pool, report):
            summaries: Mapping[tuple[str, str], str] = {}
            if self.summary and problem.reads_summary(policy.policy):
                summaries = problem.summaries(pool, programs, modes, report)
            result = guard(
                pool, build, programs, policy, modes, summaries=summaries, progress=report
            )
        write_atomically(self.out, _list(result, problem, policy, modes))
        if self.json:
            print_json(
                {
                    "policy": policy.name,
                    "out": str(self.out),
                    "lines": len(result.keys),
                    "programs": [p.to_json() for p in result.programs],
                }
            )
        else:
            show(result, policy, modes, problem.report)
            lines = counted(len(result.keys), "line")
            stdout.print(f"{escape(str(self.out))}: {lines}", soft_wrap=True)
        return 0


def show(result: Guarding, policy: NamedPolicy, modes: Sequence[str], report: Report) -> None:
    """Print each program's score in each mode, the worst growth under the bare policy first."""
    table = Table(title=f"{escape(policy.name)} guarded, {report.quantity}")
    for name in ("program", "mode", "stock", "policy", "guarded", "back to stock"):
        left = name in ("program", "mode")
        table.add_column(name, justify="left" if left else "right", overflow="fold")
    for program in sorted(result.programs, key=_worst_first):
        for mode in modes:
            first, stock = mode == modes[0], program.stock[mode]
            table.add_row(
                escape(program.program.rpartition("/")[2]) if first else "",
                mode,
                f"{stock:,.{report.decimals}f}",
                percent(change_pct(stock, program.policy[mode])),
                percent(change_pct(stock, program.guarded[mode])),
                f"{len(program.back)} of {program.modules}" if first else "",
                end_section=mode == modes[-1],
            )
    stdout.print(table)


def _worst_first(program: Guarded) -> tuple[float, str]:
    growth = max(change_pct(before, program.policy[m]) for m, before in program.stock.items())
    return -growth, program.program


def _list(result: Guarding, problem: Problem, policy: NamedPolicy, modes: Sequence[str]) -> str:
    """Return the overrides file."""
    judged = f"{problem.report.mode}s {', '.join(modes)}\n" if problem.report.mode else ""
    title = (
        f"Modules that the stock compiler keeps, so that no program is larger than stock.\n"
        f"policy {policy.name} {policy.digest}\n{judged}"
        f"programs {', '.join(p.program for p in result.programs)}"
    )
    overrides = problem.overrides()
    comments = {key: ", ".join(result.names[key]) for key in result.keys}
    return overrides.to_text(dict.fromkeys(result.keys, overrides.stock), comments, title)
