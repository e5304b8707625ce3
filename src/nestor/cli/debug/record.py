"""``nestor overrides record``: what a policy decides in a program, as overrides."""

from dataclasses import dataclass, field
from pathlib import Path

import tyro
from rich.markup import escape

from nestor.bisect.replay import Replay, replay
from nestor.cli.console import counted, print_json, stdout
from nestor.cli.options import OutputFile
from nestor.cli.policies.builds import usual_summary
from nestor.cli.setup import DEFAULT_PROBLEM, corpus_for, program_named, ready_pool
from nestor.files import write_atomically
from nestor.problem.registry import find_problem
from nestor.rollout.local_pool import PoolSettings


@dataclass(frozen=True)
class Record:
    """Write what a policy decides otherwise than the default in a program, as overrides.

    Under the policy 'default' and these lines the program is compiled as under the policy, which
    is no longer needed: a result to review line by line, to keep when the policy changes, or to
    take to a machine without it. Each line is about one module, since functions that several
    modules hold, as inline ones in C++, may be decided otherwise in each. All modules are compiled
    again with the lines: the exit status is 1 if an object is not the same, bit for bit.

    Examples:
        nestor overrides record ninja --corpus corpus/bench --policy distilled --out ninja.txt
        nestor clang default --overrides ninja.txt -- -Oz -c util.cc
    """

    program: tyro.conf.Positional[str]
    """The program's name, or the last part of it."""
    corpus: Path
    """The corpus that holds it."""
    policy: str
    """A policy file or a built-in."""
    out: OutputFile
    """The overrides file to write."""
    problem: str = DEFAULT_PROBLEM
    """The problem that the policy decides."""
    summary: bool = False
    """Give a policy that reads one a summary of the rest of the program."""
    pool: tyro.conf.OmitArgPrefixes[PoolSettings] = field(default_factory=PoolSettings)
    """How compilers run."""
    llvm: str | None = None
    """LLVM to use: a prefix or a clang."""
    json: bool = False
    """Print JSON."""

    def run(self) -> int:
        """Compile, write the overrides and say which objects they give again."""
        problem = find_problem(self.problem)
        policy = problem.policy(self.policy)
        corpus = corpus_for(problem, self.corpus, [policy])
        program = program_named(corpus, self.program)
        with ready_pool(problem, corpus, self.llvm, self.pool) as (pool, report):
            summary = usual_summary(pool, program, policy, report) if self.summary else None
            found = replay(pool, program, policy, summary=summary, progress=report)
        write_atomically(self.out, found.text(problem))
        if self.json:
            print_json(
                {
                    "program": found.program,
                    "policy": found.policy.name,
                    "overrides": str(self.out),
                    "lines": len(found.overrides),
                    "same": list(found.same),
                    "other": dict(found.other),
                }
            )
        else:
            _show(found, self.out)
        return 1 if found.other else 0


def _show(found: Replay, path: Path) -> None:
    modules = len(found.same) + len(found.other)
    lines = counted(len(found.overrides), "line")
    stdout.print(
        f"{escape(str(path))}: {lines}; {len(found.same)} of {modules} objects are the same, bit"
        " for bit",
        soft_wrap=True,
    )
    for name, reason in found.other.items():
        stdout.print(f"  {escape(name)}: {escape(reason)}", soft_wrap=True)
