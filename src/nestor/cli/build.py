"""``nestor build``: a program of a corpus under a policy, ready to run."""

import tempfile
from dataclasses import dataclass, field
from pathlib import Path

import tyro

from nestor.cli.console import print_json, progress, stdout
from nestor.cli.setup import ready_plugin
from nestor.corpus import store
from nestor.corpus.relink import LinkMode
from nestor.errors import NestorError
from nestor.rewards.linked_size import link
from nestor.rollout.policy_file import policy_file
from nestor.rollout.pool import Pool, PoolSettings
from nestor.rollout.rollout import Request


@dataclass(frozen=True)
class Build:
    """Compile and link one program of a corpus under a policy.

    The modules are compiled by the unmodified clang from the bitcode of the corpus; the source
    tree is not needed.

    Examples:
        nestor build lz4 --corpus corpus/tiny --policy runs/es/policy.safetensors --out ./lz4
    """

    program: tyro.conf.Positional[str]
    """The program's name, or the last part of it."""
    corpus: Path
    """The corpus that holds it."""
    out: Path
    """The file to write."""
    policy: str = "default"
    """A policy file or a built-in."""
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
        corpus = store.load(self.corpus)
        named = [p for p in corpus.programs if self.program in (p.name, p.name.rsplit("/", 1)[-1])]
        if len(named) != 1:
            names = ", ".join(p.name for p in (named or corpus.programs))
            raise NestorError(
                f"'{self.program}' is not one program of the corpus; there are: {names}."
            )
        program = named[0]
        with progress() as report, tempfile.TemporaryDirectory(prefix="nestor-build-") as text:
            plugin = ready_plugin(self.llvm, report)
            keep = {name: Path(text) / f"{i}.o" for i, name in enumerate(program.modules)}
            with Pool(corpus, plugin, self.pool) as pool:
                done = pool.run(
                    [Request(corpus.module(n), policy.argument, keep=keep[n]) for n in keep], report
                )
            for failed in (r for r in done if not r.ok):
                raise NestorError(f"{failed.request.module.name}: {failed.failure}.")
            partial = self.out.with_name(self.out.name + ".partial")
            linked = link(plugin.toolchain, corpus, program, keep, mode=self.mode, out=partial)
            if linked.measure is None:
                partial.unlink(missing_ok=True)
                raise NestorError(f"{program.name}: {linked.failure}.")
            partial.replace(self.out)
        sizes = {"program": program.name, "out": str(self.out), "loadable": linked.measure.loadable}
        if self.json:
            print_json(sizes)
        else:
            stdout.print(
                f"{self.out}: {program.name} under {policy.name},"
                f" {linked.measure.loadable:,} loadable bytes",
                soft_wrap=True,
            )
        return 0
