"""``nestor problem``: the decision problems, and whether one can be learned."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import tyro
from rich.markup import escape
from rich.table import Table

from nestor.cli.console import counted, print_json, stdout
from nestor.cli.setup import corpus_for, ready_pool
from nestor.corpus.model import CorpusError
from nestor.problem.check import check_problem
from nestor.problem.problem import Problem
from nestor.problem.registry import find_problem, problem_names
from nestor.rollout.local_pool import PoolSettings


@dataclass(frozen=True)
class List:
    """Show the decision problems that policies can be trained for.

    A row has the name, the rule that turns a policy's logits into an answer, the optimisation
    level of its corpora, and what is decided.

    Examples:
        nestor problem list
        nestor problem list --json
    """

    json: bool = False
    """Print JSON."""

    def run(self) -> int:
        """Print a row for each problem."""
        rows = [_row(find_problem(name)) for name in problem_names()]
        if self.json:
            print_json({"problems": rows})
            return 0
        table = Table()
        for column in rows[0]:
            table.add_column(column.replace("_", " "), overflow="fold")
        for row in rows:
            table.add_row(*(escape(str(value)) for value in row.values()))
        stdout.print(table)
        return 0


@dataclass(frozen=True)
class Check:
    """Check what a learner relies on, before anything is trained.

    Compiles a few units of the corpus several times: compiles are reproducible, without a policy
    the answers are the default's, answers that a policy gives are taken, and some change the score.
    The exit status is 0 if all of it holds.

    Examples:
        nestor problem check inlining-size --corpus corpus/tiny
        nestor problem check ./hoisting --corpus corpus/tiny --units 8
    """

    problem: tyro.conf.Positional[str]
    """A problem's name, or the path of a folder or .py file with a PROBLEM, whose code is run."""
    corpus: Path
    """A corpus at the problem's optimisation level."""
    units: int = 4
    """How many units of the split "train" to compile, or of all splits if that has none."""
    pool: tyro.conf.OmitArgPrefixes[PoolSettings] = field(default_factory=PoolSettings)
    """How compilers run."""
    llvm: str | None = None
    """LLVM to use: a prefix or a clang."""
    json: bool = False
    """Print JSON."""

    def run(self) -> int:
        """Check, and say so if all holds."""
        problem = find_problem(self.problem)
        corpus = corpus_for(problem, self.corpus, None)
        units = (corpus.modules_of("train") or corpus.modules)[: max(1, self.units)]
        if not units:
            raise CorpusError(f"The corpus {corpus.root} has no modules: capture a build.")
        with ready_pool(problem, corpus, self.llvm, self.pool) as (pool, _):
            check_problem(problem, pool.place, units)
        if self.json:
            print_json(_row(problem) | {"units": [unit.name for unit in units], "holds": True})
        else:
            stdout.print(f"{problem.name}: all holds on {counted(len(units), 'unit')}")
        return 0


def _row(problem: Problem) -> dict[str, Any]:
    return {
        "name": problem.name,
        "rule": problem.rule.name,
        "levels": " ".join(problem.levels),
        "score": problem.score,
        "builds": ", ".join(problem.builds()),
        "decides": problem.summary,
    }
