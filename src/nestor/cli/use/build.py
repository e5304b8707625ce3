"""``nestor build``: a program of a corpus under a policy, ready to run."""

import shutil
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final, NamedTuple, get_args

import tyro

from nestor.build.binary import build_binaries
from nestor.build.build import Build as ProgramBuild
from nestor.build.build import Job, summary_for
from nestor.build.link import LINKED, TEXT
from nestor.cli.console import print_json, progress, stdout
from nestor.cli.policies.builds import (
    check_summary,
    chosen_build,
    overrides_text,
    remark_on_build,
)
from nestor.cli.setup import DEFAULT_PROBLEM, corpus_for, program_named, ready_plugin
from nestor.compiler.invocation import LtoKind
from nestor.corpus.relink import LinkMode
from nestor.errors import NestorError
from nestor.evaluate.guard import guard
from nestor.files import replacing
from nestor.problem.registry import find_problem
from nestor.progress import Progress
from nestor.rollout.local_pool import LocalPool, PoolSettings

_USUAL: Final = "gc"
"""How programs are linked where no mode is named."""


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
    """How it is built, such as full-lto or thin-lto (default: the modules are linked)."""
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
        corpus = corpus_for(problem, self.corpus, [policy])
        program = program_named(corpus, self.program)
        back: tuple[str, ...] = ()
        named = self.build is not None or self.lto is not None
        with progress() as report:
            plugin = ready_plugin(problem, self.llvm, report)
            with LocalPool(problem, corpus, plugin, self.pool) as pool:
                summary = None
                if self.summary:
                    mode = self.mode or build.modes[0]
                    summary = summary_for(pool, build, program, policy, mode, report)
                job = Job(
                    program,
                    self.mode or (build.modes[0] if named else _USUAL),
                    policy,
                    overrides=overrides,
                    summary=summary,
                    keep=True,
                )
                if self.never_worse:
                    job, back = _guarded(pool, build, job, report)
                executable = (
                    _built(pool, build, job, report) if named else _linked(pool, job, report)
                )
                with replacing(self.out) as scratch:
                    shutil.copyfile(pool.objects.path(executable.binary), scratch)
                    scratch.chmod(0o755)
        if self.json:
            content = {"program": program.name, "out": str(self.out), "stock_modules": list(back)}
            print_json(content | {LINKED: executable.loadable, TEXT: executable.text})
            return 0
        modules = len(program.modules)
        stock = f", {len(back)} of {modules} modules stock" if self.never_worse else ""
        size = f"{executable.loadable:,} loadable bytes"
        stdout.print(
            f"{self.out}: {program.name} under {policy.name}, {size}{stock}", soft_wrap=True
        )
        return 0


class _Executable(NamedTuple):
    binary: str
    """The SHA-256 of the program in the pool's store of objects."""
    loadable: int
    text: int


def _linked(pool: LocalPool, job: Job, report: Progress) -> _Executable:
    """Compile and link, which needs no way to judge the program."""
    if job.mode not in get_args(LinkMode):
        raise NestorError(
            f"There is no link mode '{job.mode}'; there are {', '.join(get_args(LinkMode))}."
        )
    (executable,) = build_binaries(pool, [job], report)
    if executable.digest is None or executable.measure is None:
        raise NestorError(f"{job.program.name}: {executable.failure}.")
    return _Executable(executable.digest, executable.measure.loadable, executable.measure.text)


def _built(pool: LocalPool, build: ProgramBuild, job: Job, report: Progress) -> _Executable:
    """Build in the way that the user names."""
    (built,) = build.run(pool, [job], report)
    failures = [f"{c.unit}: {c.failure}." for c in built.compiles if c.failure]
    if failures:
        raise NestorError(failures[0])
    if built.columns is None:
        raise NestorError(f"{job.program.name}: {built.failure}.")
    if built.binary is None:
        raise NestorError(f"The build '{build.name}' makes no file.")
    return _Executable(built.binary, int(built.columns[LINKED]), int(built.columns[TEXT]))


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
