"""``nestor build``: a program of a corpus under a policy, ready to run."""

import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import tyro

from nestor.cli.console import print_json, progress, stdout
from nestor.cli.setup import program_named, ready_plugin
from nestor.corpus import store
from nestor.corpus.model import Program
from nestor.corpus.relink import LinkMode
from nestor.errors import NestorError
from nestor.evaluate.guard import Objects, guard
from nestor.policy import overrides
from nestor.progress import Progress
from nestor.rewards.linked_size import link
from nestor.rollout.policy_file import PolicyFile, policy_file
from nestor.rollout.pool import Pool, PoolSettings
from nestor.rollout.program import compile_program
from nestor.rollout.summaries import reads_program, summaries


@dataclass(frozen=True)
class Build:
    """Compile and link one program of a corpus under a policy.

    The modules are compiled by the unmodified clang from the bitcode of the corpus; the source
    tree is not needed. With --never-worse they are compiled stock too, and those that make the
    program larger in this link mode are taken from there; 'nestor guard' makes a list of them
    that can be kept.

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
    policy: str = "default"
    """A policy file or a built-in."""
    overrides: Path | None = None
    """Answers that stand above the policy's (docs/reference/formats.md)."""
    never_worse: bool = False
    """Leave modules to stock so that the program does not grow: twice the compile."""
    summary: bool = False
    """Tell a policy that reads it what the rest of the program does."""
    mode: LinkMode = "gc"
    """How to link: drop unused sections, keep them, or also merge equal functions."""
    pool: tyro.conf.OmitArgPrefixes[PoolSettings] = field(default_factory=PoolSettings)
    """How compilers run."""
    llvm: str | None = None
    """LLVM to use: a prefix or a clang."""
    json: bool = False
    """Print JSON."""

    def run(self) -> int:
        """Build, or say which module or link failed."""
        policy = policy_file(self.policy)
        if self.overrides is not None:
            overrides.load(self.overrides)  # said once here instead of by every compile
        corpus = store.load(self.corpus)
        program = program_named(corpus, self.program)
        with progress() as report, tempfile.TemporaryDirectory(prefix="nestor-build-") as text:
            plugin = ready_plugin(self.llvm, report)
            with Pool(corpus, plugin, self.pool) as pool:
                objects, back = self._objects(pool, program, policy, Path(text), report)
            partial = self.out.with_name(self.out.name + ".partial")
            linked = link(plugin.toolchain, corpus, program, objects, mode=self.mode, out=partial)
            if linked.measure is None:
                partial.unlink(missing_ok=True)
                raise NestorError(f"{program.name}: {linked.failure}.")
            partial.replace(self.out)
        if self.json:
            print_json(
                {
                    "program": program.name,
                    "out": str(self.out),
                    "loadable": linked.measure.loadable,
                    "stock_modules": list(back),
                }
            )
        else:
            stock = f", {len(back)} of {len(objects)} modules stock" if self.never_worse else ""
            stdout.print(
                f"{self.out}: {program.name} under {policy.name},"
                f" {linked.measure.loadable:,} loadable bytes{stock}",
                soft_wrap=True,
            )
        return 0

    def _objects(
        self, pool: Pool, program: Program, policy: PolicyFile, folder: Path, report: Progress
    ) -> tuple[Mapping[str, Path], tuple[str, ...]]:
        """Return the objects to link, and which of them are stock for the program's sake."""
        told = {}
        if self.summary and reads_program(policy.policy):
            told = dict(summaries(pool, [program], [self.mode], folder / "summary", report))
        objects = compile_program(
            pool,
            program,
            policy,
            folder / "policy",
            overrides=self.overrides,
            summary=told.get((program.name, self.mode)),
            progress=report,
        )
        if not self.never_worse:
            return objects, ()
        stock = compile_program(pool, program, None, folder / "stock", progress=report)
        build = Objects(program, stock, {self.mode: objects})
        (guarded,) = guard(pool, [build], [self.mode], report).programs
        return objects | {name: stock[name] for name in guarded.back}, guarded.back
