"""``nestor corpus info``: what is in a corpus."""

from dataclasses import dataclass
from pathlib import Path

import tyro

from nestor.cli.console import progress
from nestor.cli.corpus.show import show, show_modules
from nestor.corpus import store


@dataclass(frozen=True)
class Info:
    """Show what is in a corpus: projects, splits, modules, programs, and what is missing.

    Examples:
        nestor corpus info corpus/tiny
        nestor corpus info corpus/tiny --verify --json
        nestor corpus info corpus/tiny --modules | grep lz4
    """

    directory: tyro.conf.Positional[Path]
    """The corpus."""
    verify: bool = False
    """Read every file and compare its sha256 with the manifest."""
    modules: bool = False
    """Print the names of all modules instead, one in a line; as JSON with their programs."""
    json: bool = False
    """Print as JSON."""

    def run(self) -> int:
        """Print; errors are raised."""
        corpus = store.load(self.directory)
        if self.verify:
            with progress() as report:
                store.verify(corpus, report)
        if self.modules:
            show_modules(corpus, self.json)
        else:
            show(corpus, self.json)
        return 0
