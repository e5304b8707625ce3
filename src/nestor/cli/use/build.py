"""``nestor build``: a program of a corpus under a policy, ready to run."""

import shutil
from dataclasses import dataclass, field, replace
from pathlib import Path

import tyro

from nestor.build.build import Build as ProgramBuild
from nestor.build.build import Job, summary_for
from nestor.build.linking import LINKED, TEXT
from nestor.cli.console import print_json, print_line
from nestor.cli.options import OutputFile
from nestor.cli.policies.builds import (
    check_summary,
    chosen_build,
    overrides_text,
    remark_on_build,
)
from nestor.cli.setup import DEFAULT_PROBLEM, corpus_for, program_named, ready_pool
from nestor.compiler.invocation import LtoKind
from nestor.corpus.relink import LinkMode
from nestor.errors import NestorError
from nestor.evaluate.guard import guard
from nestor.files import replacing
from nestor.problem.registry import find_problem
from nestor.progress import Progress
from nestor.rollout.local_pool import LocalPool, PoolSettings


@dataclass(frozen=True)
class Build:
    r"""Compile and link one program of a corpus under a policy.

    The modules are compiled by the unmodified clang from the bitcode of the corpus; the source
    tree is not needed. With --never-worse, modules that make the program larger in this mode are
    left to the stock heuristic; 'nestor guard' makes a list of them that can be kept.

    Examples:
        nestor build lz4 --corpus corpus/tiny --policy runs/es/policy.safetensors --out ./lz4
        nestor build lz4 --corpus corpus/tiny --policy mlgo2020 --never-worse --out ./lz4
        nestor build lz4 --corpus corpus/tiny --policy mlgo2020 --overrides guard.txt --out ./lz4
        nestor build lz4 --corpus corpus/tiny-O2 --problem inlining-speed --policy shipped-speed \
            --out ./lz4
    """

    program: tyro.conf.Positional[str]
    """The program's name, or the last part of it."""
    corpus: Path
    """The corpus that holds it."""
    out: OutputFile
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
    """How it is built, such as full-lto or thin-lto (default: the modules are linked)."""
    lto: LtoKind | None = None
    """Link by LTO, the policy deciding inside the linker."""
    mode: LinkMode = "gc"
    """How to link: drop unused sections (gc), keep them (no-gc), or also merge equal functions
    (icf)."""
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
        corpus = corpus_for(problem, self.corpus, [policy])
        program = program_named(corpus, self.program)
        back: tuple[str, ...] = ()
        with ready_pool(problem, corpus, self.llvm, self.pool) as (pool, report):
            summary = None
            if self.summary:
                summary = summary_for(pool, build, program, policy, self.mode, report)
            job = Job(program, self.mode, policy, overrides=overrides, summary=summary)
            if self.never_worse:
                job, back = _guarded(pool, build, job, report)
            (linked,) = build.binaries(pool, [job], report)
            if linked.digest is None or linked.measure is None:
                raise NestorError(f"{program.name}: {linked.failure}.")
            with replacing(self.out) as scratch:
                shutil.copyfile(pool.objects.path(linked.digest), scratch)
                scratch.chmod(0o755)
        size = linked.measure
        if self.json:
            content = {"program": program.name, "out": str(self.out), "stock_modules": list(back)}
            print_json(content | {LINKED: size.loadable, TEXT: size.text})
            return 0
        modules = len(program.modules)
        stock = f", {len(back)} of {modules} modules stock" if self.never_worse else ""
        print_line(
            f"{self.out}: {program.name} under {policy.name}, {size.loadable:,} loadable bytes"
            f"{stock}"
        )
        return 0


def _guarded(
    pool: LocalPool, build: ProgramBuild, job: Job, report: Progress
) -> tuple[Job, tuple[str, ...]]:
    """Return ``job`` with the modules left to stock that make the program larger, and these."""
    assert job.policy is not None
    mode = job.mode if job.mode in build.modes else build.modes[0]
    form = pool.problem.overrides()
    base = {} if job.overrides is None else form.parse(job.overrides)
    texts = {} if job.summary is None else {(job.program.name, mode): job.summary}
    found = guard(
        pool, build, [job.program], job.policy, [mode],
        summaries=texts, overrides=base, progress=report,
    )  # fmt: skip
    overrides = form.to_text({**base, **dict.fromkeys(found.keys, form.stock)})
    return replace(job, overrides=overrides), found.programs[0].back
