"""``nestor workload calls``: how often the functions of programs are called."""

from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import tyro
from rich.box import SIMPLE
from rich.markup import escape
from rich.table import Table

from nestor.cli.console import print_json, stdout
from nestor.cli.options import refuse_idle
from nestor.cli.policies.failures import show_failures
from nestor.cli.setup import programs_named, ready_pool
from nestor.cli.workload.measure import DEFAULT_PROBLEM
from nestor.corpus import store
from nestor.files import refuse_place
from nestor.problem.registry import find_problem
from nestor.rollout.local_pool import PoolSettings
from nestor.workload.calls import CALLS

if TYPE_CHECKING:  # 'nestor workload calls --help' starts without what reads objects
    from nestor.evaluate.workload_calls import CountedCalls


@dataclass(frozen=True)
class Calls:
    """Count how often each function is called in the programs' profile runs, under callgrind.

    Builds the programs by the stock compiler, runs each on its profile workload, not on the one
    that is measured, and writes the calls of its own functions into calls.json in the corpus. From
    then on register allocation weights the cost of a function with its calls where the modules
    carry no profile; where they do, calls.json is not used. Write it before training, not between
    trainings that are compared.

    Each program is written when its run has ended, and a program that is there is not run again: a
    command that was interrupted goes on where it was. Runs the programs of the corpus (foreign
    code). The exit status is 1 if a program could not be built or run; the others are written.

    Examples:
        nestor workload calls --corpus corpus/speed-cg
        nestor workload calls --corpus corpus/speed-cg --split train --jobs 2
        nestor workload calls --corpus corpus/speed-cg --program minigzip jsonx --fresh
    """

    corpus: Path
    """A corpus with workloads, such as the tier speed or a codegen corpus made of it."""
    split: Literal["train", "validation", "test", "all"] = "all"
    """Whose programs to run."""
    program: tuple[str, ...] = ()
    """Programs, by their names or the last parts of them (default: all of the split)."""
    fresh: bool = False
    """Run programs again whose calls are there already, and replace these."""
    pool: tyro.conf.OmitArgPrefixes[PoolSettings] = field(default_factory=PoolSettings)
    """How compilers and the programs run."""
    llvm: str | None = None
    """LLVM to use: a prefix or a clang."""
    json: bool = False
    """Print JSON."""

    def run(self) -> int:
        """Count and print; 1 if anything failed, which is printed last."""
        from nestor.evaluate.compare import select_programs
        from nestor.evaluate.workload_calls import count_calls
        from nestor.evaluate.workloads import require_workloads

        if self.program:
            refuse_idle(self, "with --program", "split")
        problem = find_problem(DEFAULT_PROBLEM)
        corpus = store.load(self.corpus)
        named = programs_named(corpus, self.program)
        programs = require_workloads(
            corpus, named or select_programs(corpus, self.split), profile=True
        )
        refuse_place(self.corpus / CALLS)
        with ready_pool(problem, corpus, self.llvm, self.pool) as (pool, report):
            counted = count_calls(pool, programs, fresh=self.fresh, progress=report)
        if self.json:
            print_json(_json(counted, self.corpus / CALLS))
        else:
            _show(counted)
        return show_failures(counted.failures)


def _json(counted: "CountedCalls", out: Path) -> dict[str, Any]:
    programs = [
        {
            "program": name,
            "functions": len(calls),
            "calls": sum(calls.values()),
            "kept": name in counted.kept,
        }
        for name, calls in counted.programs.items()
    ]
    failures = [asdict(failure) for failure in counted.failures]
    return {"out": str(out), "programs": programs, "failures": failures}


def _show(counted: "CountedCalls") -> None:
    table = Table("program", box=SIMPLE)
    for title in ("functions called", "calls"):
        table.add_column(title, justify="right")
    table.add_column("")
    for name, calls in counted.programs.items():
        state = "there before" if name in counted.kept else ""
        table.add_row(escape(name), f"{len(calls):,}", f"{sum(calls.values()):,}", state)
    stdout.print(table)
