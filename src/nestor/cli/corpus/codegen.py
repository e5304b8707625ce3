"""``nestor corpus codegen``: a corpus for problems that decide in code generation."""

from dataclasses import dataclass
from pathlib import Path

import tyro

from nestor.cli.console import progress
from nestor.cli.corpus.show import show
from nestor.cli.options import OutputFolder
from nestor.compiler import toolchain
from nestor.corpus import store
from nestor.corpus.codegen.make import make_codegen_corpus


@dataclass(frozen=True)
class Codegen:
    """Make a codegen corpus: the modules of a corpus as the middle end gives them to codegen.

    Register allocation and what else is decided in code generation needs no pass before it: a
    compile of such a module costs about half as much, and gives the same object.

    Examples:
        nestor corpus codegen corpus/speed corpus/speed-cg
        nestor corpus codegen corpus/speed corpus/speed-pgo --profile
        nestor corpus codegen corpus/speed corpus/speed-arm --target aarch64-linux-gnu
    """

    directory: tyro.conf.Positional[Path]
    """The corpus to take the modules from."""
    out: tyro.conf.Positional[OutputFolder]
    """The new corpus."""
    profile: bool = False
    """Run the programs that have a profile run (they are foreign code), and give their modules the
    counts, as -fprofile-use does."""
    target: str | None = None
    """Compile for this target, such as aarch64-linux-gnu, in place of the modules' own. Modules
    that depend on theirs are left out with their programs, and nothing of the corpus can be run."""
    jobs: int = 2
    """Compilers at the same time."""
    llvm: str | None = None
    """LLVM to use: a prefix or a clang; without it, one is looked for."""
    json: bool = False
    """Print the result as JSON."""

    def run(self) -> int:
        """Make the corpus; 1 if a module could not be optimised or a program not be run."""
        found = toolchain.find(self.llvm)
        corpus = store.load(self.directory)
        with progress() as report:
            written = make_codegen_corpus(
                corpus,
                self.out,
                found,
                profile=self.profile,
                target=self.target,
                jobs=self.jobs,
                progress=report,
            )
        show(written, self.json)
        return 0 if len(written.missing) == len(corpus.missing) else 1
