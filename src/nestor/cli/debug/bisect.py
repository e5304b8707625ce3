"""``nestor bisect``: the decisions of a policy that make a program fail."""

import shlex
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import tyro
from rich.markup import escape

from nestor.bisect.bisect import Bisected, bisect
from nestor.bisect.check import Check
from nestor.bisect.compiled import CompiledModules
from nestor.cli.console import print_json, progress, stdout
from nestor.cli.options import OutputFolder
from nestor.cli.policies.builds import usual_summary
from nestor.cli.setup import DEFAULT_PROBLEM, corpus_for, program_named, ready_plugin
from nestor.corpus.relink import LinkMode
from nestor.files import claimed, write_atomically
from nestor.problem.registry import find_problem
from nestor.rollout.local_pool import LocalPool, PoolSettings


@dataclass(frozen=True)
class Bisect:
    r"""Find the decisions of a policy that make a program fail, and write overrides that undo them.

    COMMAND says whether a program is good: {} in its words stands for the program. Exit status 0
    is good, 125 means that the command cannot tell, and any other is bad, as are a signal, a
    command that takes longer than --seconds, and a program that does not link. It is run as it is,
    without a shell and with your environment.

    First objects compiled under the policy and under the default are mixed, which takes a link for
    each test; then the decisions in the modules that were found are replayed a few at a time. What
    is found is a minimal cause: without any one of its decisions, the rest of it does no harm.
    OUT/overrides.txt leaves these decisions to the default, and the program under the policy and
    these lines has passed the command; 'nestor clang', 'nestor flags' and 'nestor build' take the
    file as --overrides. The same command goes on where it was stopped.

    A program's size is no test for this: every decision changes it a little. 'nestor tune' and
    'nestor guard' look for the decisions that make it large.

    Examples:
        nestor bisect lua --corpus corpus/bench --bad my.safetensors --out found -- {} tests/all.lua
        nestor bisect ninja --corpus corpus/mine --bad shipped --out found -- ./check.sh {}
        nestor bisect lz4 --corpus corpus/tiny-O2 --problem regalloc-eviction \
            --bad shipped-eviction --out found -- ./check.sh {}
    """

    program: tyro.conf.Positional[str]
    """The program's name, or the last part of it."""
    command: tyro.conf.Positional[tuple[str, ...]]
    """The command after --, with {} for the program."""
    corpus: Path
    """The corpus that holds it."""
    bad: str
    """The policy under which it fails: a policy file or a built-in."""
    out: OutputFolder
    """The folder for the result and what is needed to go on."""
    good: Literal["default"] = "default"
    """What it is good under: the default heuristic, to which each decision can be left."""
    problem: str = DEFAULT_PROBLEM
    """The problem that the policy decides."""
    mode: LinkMode = "gc"
    """How the program is linked."""
    seconds: float = 60.0
    """A program with which the command takes longer is bad."""
    repeat: bool = True
    """Run the command twice at both ends first, to find out whether it says the same."""
    summary: bool = False
    """Give a policy that reads one a summary of the rest of the program."""
    pool: tyro.conf.OmitArgPrefixes[PoolSettings] = field(default_factory=PoolSettings)
    """How compilers run."""
    llvm: str | None = None
    """LLVM to use: a prefix or a clang."""
    json: bool = False
    """Print JSON."""

    def run(self) -> int:
        """Search, write the overrides and print the decisions."""
        from nestor.bisect.trials import Trials  # takes numpy

        check = Check(self.command, self.seconds)
        problem = find_problem(self.problem)
        policy = problem.policy(self.bad)
        corpus = corpus_for(problem, self.corpus, [policy])
        program = program_named(corpus, self.program)
        with claimed(self.out), progress() as report:
            plugin = ready_plugin(problem, self.llvm, report)
            with LocalPool(problem, corpus, plugin, self.pool) as pool:
                summary = usual_summary(pool, program, policy, report) if self.summary else None
                found = bisect(
                    CompiledModules(pool, summary),
                    program,
                    policy,
                    Trials(pool, program, self.mode, check, self.out),
                    repeat=self.repeat,
                    progress=report,
                )
        path = self.out / "overrides.txt"
        write_atomically(path, found.text(problem))
        if self.json:
            print_json(_as_json(found) | {"overrides": str(path)})
        else:
            _show(found, path)
        return 0


def _as_json(found: Bisected) -> dict[str, Any]:
    return {
        "program": found.program,
        "policy": found.policy.name,
        "modules": found.modules,
        "changed_modules": found.changed,
        "deviations": found.deviations,
        "tests": found.cost.tests,
        "compiles": found.cost.compiles,
        "cpu_seconds": round(found.cost.cpu_seconds, 3),
        "causes": [
            {
                "modules": list(cause.modules),
                "decisions": [
                    {"about": d.about, "overrides": [str(key) for key in d.revert]}
                    for d in cause.decisions
                ],
            }
            for cause in found.causes
        ],
    }


def _show(found: Bisected, path: Path) -> None:
    cost = found.cost
    stdout.print(
        f"{found.deviations:,} decisions in {found.changed} of {found.modules} modules differ from"
        f" the default; {cost.tests} tests and {cost.compiles} compiles of modules"
    )
    for number, cause in enumerate(found.causes, 1):
        stdout.print(f"cause {number}, in {escape(', '.join(cause.modules))}:", soft_wrap=True)
        for decision in cause.decisions:
            stdout.print(f"  {escape(decision.about)}", soft_wrap=True)
    stdout.print(f"without them the program is good: {escape(str(path))}", soft_wrap=True)
    words = ["nestor", "clang", found.policy.name, "--overrides", str(path)]
    stdout.print(f"use them:  {escape(shlex.join(words))} -- …", soft_wrap=True)
