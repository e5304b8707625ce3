"""``nestor corpus fetch``: build a corpus of open-source projects."""

from dataclasses import dataclass
from pathlib import Path

import tyro

from nestor.cli.console import print_json, progress
from nestor.cli.corpus.show import as_json, print_table
from nestor.compiler import toolchain
from nestor.corpus import files
from nestor.corpus.fetch.fetch import fetch
from nestor.corpus.fetch.tiers import Tier, recipes, usual_level
from nestor.corpus.level import Level


@dataclass(frozen=True)
class Fetch:
    """Fetch a ready-made tier of open-source projects and build it into a corpus.

    The sources are Debian's, pinned by version and sha256 and downloaded by apt from the mirrors
    that this machine already uses. A project that is there already is not fetched again.

    Examples:
        nestor corpus fetch tiny corpus/tiny        six projects, 44 modules, under a minute
        nestor corpus fetch demo corpus/demo        the same and ninja, a held-out C++ program
        nestor corpus fetch bench corpus/bench      the projects that results are reported on
        nestor corpus fetch fresh corpus/fresh      projects to evaluate on once, at the end
        nestor corpus fetch speed corpus/speed      programs with workloads, at -O2
        nestor corpus fetch tiny corpus/tiny-o2 --level -O2     for register allocation
    """

    tier: tyro.conf.Positional[Tier]
    """Which set of projects."""
    directory: tyro.conf.Positional[Path]
    """The corpus to make or to complete."""
    level: Level | None = None
    """The optimisation level of the modules, as the problem wants it; without one, that of the
    tier: -O2 for speed, -Oz for the others."""
    jobs: int = 2
    """Projects built at the same time."""
    llvm: str | None = None
    """LLVM to use: a prefix or a clang; without it, one is looked for."""
    json: bool = False
    """Print the result as JSON."""

    def run(self) -> int:
        """Fetch; 1 if no project of the tier could be built."""
        found = toolchain.find(self.llvm)
        with files.using(self.directory), progress() as report:
            level = self.level or usual_level(self.tier)
            result = fetch(recipes(self.tier), self.directory, found, self.jobs, report, level)
        if self.json:
            fetched = {"fetched": list(result.built), "already_present": list(result.present)}
            print_json(as_json(result.corpus) | fetched)
        else:
            print_table(result.corpus, result.present)
        return 0 if result.built or result.present else 1
