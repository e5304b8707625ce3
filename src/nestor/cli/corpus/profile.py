"""``nestor corpus profile``: modules that carry the counts of a run."""

from dataclasses import dataclass
from pathlib import Path

import tyro

from nestor.cli.console import progress
from nestor.cli.corpus.show import show
from nestor.cli.options import OutputFolder
from nestor.compiler import toolchain
from nestor.corpus import store
from nestor.corpus.codegen.profiled import make_profiled_corpus


@dataclass(frozen=True)
class Profile:
    r"""Make a profiled corpus: build programs with counters, run them, and keep the counts.

    Every later compile of such a module is one with a profile, as after -fprofile-use, and needs no
    other file. Only programs that have a profile run are in it. They are run: foreign code.

    Examples:
        nestor corpus profile corpus/speed corpus/speed-profiled
        nestor evaluate --problem inlining-speed --policy shipped-speed --corpus \
            corpus/speed-profiled
    """

    directory: tyro.conf.Positional[Path]
    """The corpus to take the modules from."""
    out: tyro.conf.Positional[OutputFolder]
    """The new corpus."""
    jobs: int = 2
    """Compilers at the same time."""
    llvm: str | None = None
    """LLVM to use: a prefix or a clang; without it, one is looked for."""
    json: bool = False
    """Print the result as JSON."""

    def run(self) -> int:
        """Make the corpus; 1 if a program could not be counted."""
        found = toolchain.find(self.llvm)
        corpus = store.load(self.directory)
        with progress() as report:
            written = make_profiled_corpus(corpus, self.out, found, jobs=self.jobs, progress=report)
        show(written, self.json)
        return 0 if len(written.missing) == len(corpus.missing) else 1
