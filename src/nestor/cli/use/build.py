"""``nestor build``: a program of a corpus under a policy, ready to run."""

import shutil
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import tyro

from nestor.build.build import Job
from nestor.cli.console import print_json, progress, stdout
from nestor.cli.policies.builds import (
    check_summary,
    chosen_build,
    overrides_text,
    remark_on_build,
)
from nestor.cli.setup import DEFAULT_PROBLEM, corpus_for, program_named, ready_plugin
from nestor.compiler.invocation import LtoKind
from nestor.errors import NestorError
from nestor.evaluate.guard import guard
from nestor.files import replacing
from nestor.problem.registry import find_problem
from nestor.rollout.local_pool import LocalPool, PoolSettings


@dataclass(frozen=True)
class Build:
    """Compile and link one program of a corpus under a policy.

    The modules are compiled by the unmodified clang from the bitcode of the corpus; the source
    tree is not needed. With --never-worse, modules that make the program larger in this mode are
    left to the stock heuristic; 'nestor guard' makes a list of them that can be kept.

    Examples:
        nestor build lz4 --corpus corpus/tiny --policy runs/es/policy.safetensors --out ./lz4
        nestor build lz4 --corpus corpus/tiny --policy mlgo2020 --never-worse --out ./lz4
        nestor build lz4 --corpus corpus/tiny --policy mlgo2020 --overrides guard.txt --out ./lz4
    """

    program: tyro.conf.Positional[str]
    """The program's name, or the last part of it."""
    corpus: Path
    """The corpus that holds it."""
    out: Path
    """The file to write."""
    problem: str = DEFAULT_PROBLEM
    """The problem that the policy decides."""
    policy: str = "default"
    """A policy file or a built-in."""
    overrides: Path | None = None
    """Answers that stand above the policy's (docs/reference/formats.md)."""
    never_worse: bool = False
    """Leave modules to stock so that the program does not grow: several compiles."""
    summary: bool = False
    """Give a policy that reads one a summary of the rest of the program."""
    build: str | None = None
    """How it is built: link, full-lto or thin-lto (default: the problem's usual way)."""
    lto: LtoKind | None = None
    """Link by LTO, the policy deciding inside the linker."""
    mode: str | None = None
    """How to link: drop unused sections (gc, the default), keep them (no-gc), or also merge equal
    functions (icf)."""
    pool: tyro.conf.OmitArgPrefixes[PoolSettings] = field(default_factory=PoolSettings)
    """How compilers run."""
    llvm: str | None = None
    """LLVM to use: a prefix or a clang."""
    json: bool = False
    """Print JSON."""

    def run(self) -> int:
        """Build, or say which module or link failed."""
        problem = find_problem(self.problem)
        build = chosen_build(problem, self.build, self.lto)
        check_summary(build, self.summary)
        remark_on_build(build, [self.policy])
        policy = problem.policy(self.policy)
        overrides = overrides_text(problem, self.overrides)
        mode = self.mode or build.modes[0]
        corpus = corpus_for(problem, self.corpus, [policy])
        program = program_named(corpus, self.program)
        back: tuple[str, ...] = ()
        with progress() as report:
            plugin = ready_plugin(problem, self.llvm, report)
            with LocalPool(problem, corpus, plugin, self.pool) as pool:
                summaries: dict[tuple[str, str], str] = {}
                if self.summary and problem.reads_summary(policy.policy):
                    summaries |= problem.summaries(pool, [program], [mode], report)
                if self.never_worse:
                    form = problem.overrides()
                    base = {} if overrides is None else form.parse(overrides)
                    found = guard(
                        pool, build, [program], policy, [mode],
                        summaries=summaries, overrides=base, progress=report,
                    )  # fmt: skip
                    back = found.programs[0].back
                    overrides = form.to_text({**base, **dict.fromkeys(found.keys, form.stock)})
                job = Job(
                    program,
                    mode,
                    policy,
                    overrides=overrides,
                    summary=summaries.get((program.name, mode)),
                    keep=True,
                )
                (built,) = build.run(pool, [job], report)
                failures = [f"{c.unit}: {c.failure}." for c in built.compiles if c.failure]
                if failures:
                    raise NestorError(failures[0])
                if built.columns is None:
                    raise NestorError(f"{program.name}: {built.failure}.")
                if built.binary is None:
                    raise NestorError(f"The build '{build.name}' makes no file.")
                with replacing(self.out) as scratch:
                    shutil.copyfile(pool.objects.path(built.binary), scratch)
                    scratch.chmod(0o755)
        score = built.columns[problem.report.score]
        if self.json:
            content: dict[str, Any] = {
                "program": program.name,
                "out": str(self.out),
                problem.report.score: score,
                "stock_modules": list(back),
            }
            print_json(content)
        else:
            modules = len(program.modules)
            stock = f", {len(back)} of {modules} modules stock" if self.never_worse else ""
            stdout.print(
                f"{self.out}: {program.name} under {policy.name},"
                f" {score:,.{problem.report.decimals}f} {problem.report.quantity}{stock}",
                soft_wrap=True,
            )
        return 0
