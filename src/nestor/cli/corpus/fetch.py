"""``nestor corpus fetch``: build a corpus of open-source projects, or of any Debian packages."""

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro
from rich.markup import escape

from nestor.cli.console import print_json, progress, stdout
from nestor.cli.corpus.show import as_json, print_table
from nestor.cli.options import OutputFolder, refuse_idle
from nestor.cli.remarks import remark
from nestor.cli.wrong_words import USAGE_ERROR
from nestor.compiler import toolchain
from nestor.corpus.fetch.fetch import fetch
from nestor.corpus.fetch.tiers import TIERS, recipes, usual_level
from nestor.corpus.level import DEFAULT_LEVEL, Level
from nestor.corpus.model import Split
from nestor.corpus.packages.failure import Failure, by_reason
from nestor.corpus.packages.fetch_packages import (
    FetchedPackages,
    PackageSettings,
    fetch_packages,
)
from nestor.corpus.packages.package_build import PackageLimits
from nestor.files import refuse_folder

_TIERS = "{" + ",".join(TIERS) + "}"


@dataclass(frozen=True)
class Fetch:
    """Fetch a tier of open-source projects, or any Debian packages, and build a corpus of them.

    The sources are Debian's, downloaded by apt from the mirrors that this machine already uses.
    Those of a tier are pinned by version and sha256 and built by a recipe. With --package NAME…
    source packages are built as Debian builds them, as they come: their build dependencies are
    installed on this machine, which needs root, and the packages' own build scripts run as the user
    who gives the command, so use a container. A name with a slash is a .dsc file or a folder of
    sources. What is there already is not fetched again; what fails is listed with its reason.

    Examples:
        nestor corpus fetch tiny corpus/tiny        six projects, 44 modules, under a minute
        nestor corpus fetch demo corpus/demo        the same and ninja, a held-out C++ program
        nestor corpus fetch bench corpus/bench      the projects that results are reported on
        nestor corpus fetch fresh corpus/fresh      projects to evaluate on once, at the end
        nestor corpus fetch speed corpus/speed      programs with workloads, at -O2
        nestor corpus fetch tiny corpus/tiny-O2 --level -O2     for register allocation
        nestor corpus fetch --package lzip dash corpus/mine     two source packages
        nestor corpus fetch --package $(nestor corpus sample --seed 1) corpus/sample
    """

    what: Annotated[tyro.conf.Positional[str], tyro.conf.arg(metavar=_TIERS)]
    """Which tier, or with --package the first source package."""
    directory: tyro.conf.Positional[tuple[Path, ...]]
    """The corpus to make or to complete; with --package further packages come before it."""
    package: bool = False
    """All words but the last are source packages."""
    level: Level | None = None
    """The optimisation level of the modules, as the problem wants it; without one, that of the
    tier: -O2 for speed, -Oz for the others and for packages."""
    jobs: int = 2
    """Projects built at the same time; with --package compilations of one package."""
    minutes: float = PackageLimits.minutes
    """The longest build of one package (with --package, as all that follow)."""
    gigabytes: float = PackageLimits.gigabytes
    """The most disk that the build of one package may take, in GiB."""
    split: Split = PackageSettings.split
    """The split of the packages."""
    logs: OutputFolder | None = None
    """A folder that gets the output of each package's build."""
    llvm: str | None = None
    """LLVM to use: a prefix or a clang; without it, one is looked for."""
    json: bool = False
    """Print the result as JSON."""

    def run(self) -> int:
        """Fetch; 1 if no project of the tier, or no package, could be built."""
        if self.package:
            return self._packages()
        refuse_idle(self, "without --package", "minutes", "gigabytes", "split", "logs")
        if self.what not in TIERS or len(self.directory) != 1:
            sys.stderr.write(
                f"nestor: write a tier ({', '.join(TIERS)}) and the folder of the corpus, or"
                " --package, source packages and the folder.\n"
            )
            return USAGE_ERROR
        tier, directory = self.what, self.directory[0]
        refuse_folder(directory)
        found = toolchain.find(self.llvm)
        with progress() as report:
            level = self.level or usual_level(tier)
            result = fetch(recipes(tier), directory, found, self.jobs, report, level)
        if self.json:
            fetched = {"fetched": list(result.built), "already_present": list(result.present)}
            print_json(as_json(result.corpus) | fetched)
        else:
            print_table(result.corpus, result.present)
        return 0 if result.built or result.present else 1

    def _packages(self) -> int:
        if not self.directory:
            sys.stderr.write("nestor: write the folder of the corpus after the packages.\n")
            return USAGE_ERROR
        *more, directory = self.directory
        refuse_folder(directory)
        settings = PackageSettings(
            level=self.level or DEFAULT_LEVEL,
            split=self.split,
            limits=PackageLimits(self.minutes, self.gigabytes),
            jobs=self.jobs,
            logs=self.logs,
        )
        found = toolchain.find(self.llvm)
        with progress() as report:
            result = fetch_packages(
                [self.what, *map(str, more)], directory, found, settings, report
            )
        if self.json:
            print_json(as_json(result.corpus) | _packages_json(result))
        else:
            print_table(result.corpus, result.present)
            for failure in result.failures:
                stdout.print(_line(failure), soft_wrap=True)
            reasons = by_reason(result.failures)
            if reasons:
                counts = ", ".join(f"{reason} {count}" for reason, count in reasons.items())
                stdout.print(f"packages that failed, by reason: {counts}")
        if result.installed:
            remark(f"{len(result.installed)} build dependencies were installed on this machine.")
        return 0 if result.built or result.present else 1


def _line(failure: Failure) -> str:
    part = "a part of " if failure.partial else ""
    return f"[red]{failure.reason}[/red] {part}{escape(failure.package)}: {escape(failure.detail)}"


def _packages_json(result: FetchedPackages) -> dict[str, object]:
    return {
        "fetched": list(result.built),
        "already_present": list(result.present),
        "failures": [
            {"package": f.package, "reason": f.reason, "detail": f.detail, "partial": f.partial}
            for f in result.failures
        ],
        "reasons": by_reason(result.failures),
        "installed": list(result.installed),
    }
