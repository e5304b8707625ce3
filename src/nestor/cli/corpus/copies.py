"""``nestor corpus import`` and ``export``: copies from and to LLVM's layout."""

from dataclasses import dataclass
from pathlib import Path

import tyro

from nestor.cli.console import counted, print_json, print_line, progress
from nestor.cli.corpus.show import show
from nestor.cli.options import OutputFolder
from nestor.corpus import exchange, store


@dataclass(frozen=True)
class Import:
    """Copy a corpus in LLVM's layout (X.bc, X.cmd, corpus_description.json) to one of ours.

    Options that are not on the list of safe ones are left out and counted.

    Examples:
        nestor corpus import extracted/ corpus/theirs
    """

    source: tyro.conf.Positional[Path]
    """The corpus to copy."""
    directory: tyro.conf.Positional[OutputFolder]
    """The new corpus."""
    json: bool = False
    """Print the result as JSON."""

    def run(self) -> int:
        """Copy; errors are raised."""
        with progress() as report:
            corpus = exchange.import_(self.source, self.directory, report)
        show(corpus, self.json)
        return 0


@dataclass(frozen=True)
class Export:
    """Copy a corpus to LLVM's layout, for LLVM's own MLGO tools.

    Examples:
        nestor corpus export corpus/tiny for-llvm/
    """

    directory: tyro.conf.Positional[Path]
    """The corpus."""
    out: tyro.conf.Positional[OutputFolder]
    """The new folder."""
    json: bool = False
    """Print the result as JSON."""

    def run(self) -> int:
        """Copy; errors are raised."""
        corpus = store.load(self.directory)
        with progress() as report:
            exchange.export(corpus, self.out, report)
        if self.json:
            print_json({"modules": len(corpus.modules), "out": str(self.out)})
            return 0
        print_line(f"{counted(len(corpus.modules), 'module')} written to {self.out}")
        return 0
