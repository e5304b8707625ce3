"""Capture Debian source packages by their own builds, one after the other.

Nothing is written by hand for a package. What fails is named with a reason from a fixed list, and
the others go on; a build that fails half way leaves the programs that it had linked.
"""

import hashlib
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from nestor.compiler import process
from nestor.compiler.invocation import compile_command
from nestor.compiler.toolchain import Toolchain
from nestor.corpus import store
from nestor.corpus.capture import merge
from nestor.corpus.capture.build import Wrappers
from nestor.corpus.capture.compilation import clean
from nestor.corpus.capture.drafts import Selection
from nestor.corpus.capture.journal import Journal
from nestor.corpus.layout import JOURNAL, LOCK
from nestor.corpus.level import DEFAULT_LEVEL, Level
from nestor.corpus.model import (
    Corpus,
    Missing,
    Program,
    Project,
    Split,
)
from nestor.corpus.packages.failure import Failure, PackageError
from nestor.corpus.packages.package_build import PackageLimits, build_package
from nestor.corpus.packages.sources import Provider, version_of
from nestor.corpus.relink import link_command
from nestor.files import locked
from nestor.progress import Progress, silent
from nestor.temporary import temporary_folder

_CAPTURE: Final = 2
"""Raise it when capturing the same package gives another corpus: packages are then built again."""

_MOST_LETTERS: Final = 300


@dataclass(frozen=True)
class PackageSettings:
    """How packages are captured."""

    level: Level = DEFAULT_LEVEL
    """The optimisation level at which the modules are made."""
    split: Split = "test"
    """The split of the new projects: packages are there to judge by unless the user wants more."""
    limits: PackageLimits = field(default_factory=PackageLimits)
    """What the build of one package may use."""
    jobs: int = 2
    """Compilations at the same time."""
    logs: Path | None = None
    """A folder that gets the output of each build, by the name of the package."""


@dataclass(frozen=True)
class FetchedPackages:
    """The corpus afterwards, and what happened to each package.

    ``built`` have programs now, ``present`` had been captured already.
    """

    corpus: Corpus
    built: tuple[str, ...]
    present: tuple[str, ...]
    failures: tuple[Failure, ...]
    installed: tuple[str, ...]
    """Build dependencies that were installed on the system."""


def fetch_packages(
    packages: Sequence[str],
    root: Path,
    toolchain: Toolchain,
    settings: PackageSettings | None = None,
    progress: Progress = silent,
    provider: Provider | None = None,
) -> FetchedPackages:
    """Bring source packages into the corpus at ``root``; those that are there stay as they are.

    :param packages: names of source packages, or paths of ``.dsc`` files and of folders of sources.
    :param provider: where sources come from, for several calls that share apt's lists.
    :raises CorpusError: if ``root`` holds something else, or a corpus of another level.
    """
    settings = settings or PackageSettings()
    old = store.to_complete(root, settings.level)
    digests = {p.name: p.recipe for p in old.projects} if old else {}
    unique = list(dict.fromkeys(packages))
    absent = [
        p
        for p in unique
        if digests.get(project_name(p)) != package_digest(project_name(p), toolchain, settings)
    ]
    failures: list[Failure] = []
    built: list[str] = []
    installed: list[str] = []
    with temporary_folder("packages") as name:
        work = Path(name).resolve()
        (work / "apt").mkdir()
        provider = provider or Provider(work / "apt")
        for done, package in enumerate(absent):
            progress("fetch", done, len(absent))
            try:
                with temporary_folder("package") as folder:
                    one = _OnePackage(package, root, Path(folder).resolve(), toolchain, settings)
                    failure = one.capture(provider)
                    installed += one.installed
            except PackageError as error:
                failure = Failure(package, error.reason, error.detail)
            except OSError as error:
                failure = Failure(package, "build failed", str(error))
            if failure is not None:
                failures.append(failure)
            if failure is None or failure.partial:
                built.append(package)
        progress("fetch", len(absent), len(absent))
        missing = [Missing(project_name(f.package), f"{f.reason}: {f.detail}") for f in failures]
        corpus = merge.finalise(root, Journal(work / "none"), missing=missing)
    present = tuple(package for package in unique if package not in absent)
    return FetchedPackages(
        corpus, tuple(built), present, tuple(failures), tuple(dict.fromkeys(installed))
    )


def project_name(package: str) -> str:
    """Return the name of a package's project: its own, or that of its file or folder."""
    name = Path(package).name.removesuffix(".dsc").partition("_")[0] if "/" in package else package
    return clean(name)


def package_digest(project: str, toolchain: Toolchain, settings: PackageSettings) -> str:
    """Return a sha256 that changes with the compiler or the level; the archive has the version."""
    text = f"package {_CAPTURE} {project} {toolchain.version} {settings.level}"
    return hashlib.sha256(text.encode()).hexdigest()


class _OnePackage:
    """The capture of one package in the folder ``work``."""

    def __init__(
        self, package: str, root: Path, work: Path, toolchain: Toolchain, settings: PackageSettings
    ) -> None:
        self._package = package
        self._project = project_name(package)
        self._root = root
        self._work = work
        self._toolchain = toolchain
        self._settings = settings
        self.installed: tuple[str, ...] = ()

    def capture(self, provider: Provider) -> Failure | None:
        """Build and merge; return what was lost if there are programs nevertheless.

        :raises PackageError: if there is no program.
        """
        source = provider.unpacked(self._package, self._work / "unpacked")
        self.installed = provider.install_dependencies(source)
        captured = self._work / "captured"
        wrappers = Wrappers(
            self._toolchain, self._work / "bin", captured, self._project, source,
            self._settings.level, of_anyone=True,
        ).write()  # fmt: skip
        failed: PackageError | None = None
        try:
            self._build(source, wrappers)
        except PackageError as error:
            failed = error  # what was linked before may be used
        journal = Journal(captured / JOURNAL)
        if failed is not None and not any(True for _ in journal.links()):
            raise failed
        corpus = self._merge(journal, version_of(source))
        lost = self._without_failing_links(corpus)
        if failed is not None:
            return Failure(self._package, failed.reason, failed.detail, partial=True)
        return lost

    def _build(self, source: Path, wrappers: Wrappers) -> None:
        logs = self._settings.logs
        if logs is not None:
            logs.mkdir(parents=True, exist_ok=True)
        log = (logs or self._work) / f"{self._project}.log"
        build_package(
            source, self._work, wrappers.environment(), self._settings.limits,
            self._settings.jobs, log,
        )  # fmt: skip

    def _merge(self, journal: Journal, version: str) -> Corpus:
        """Merge the captures.

        :raises PackageError: if there is no module or no program among them.
        """
        digest = package_digest(self._project, self._toolchain, self._settings)
        project = Project(self._project, version=version, split=self._settings.split, recipe=digest)
        corpus = merge.finalise(
            self._root, journal, [Selection(project)], toolchain=self._toolchain.version
        )
        if corpus.programs_of_project(self._project):
            return corpus
        lost = [m.reason for m in corpus.missing if m.project == self._project]
        if any(module.project == self._project for module in corpus.modules):
            raise PackageError("no program", (lost or ["the build linked nothing"])[0])
        raise PackageError("no modules", (lost or ["the build compiled nothing"])[0])

    def _without_failing_links(self, corpus: Corpus) -> Failure | None:
        """Take out of the corpus the programs that cannot be linked from its modules.

        :raises PackageError: if that is all of them.
        """
        programs = corpus.programs_of_project(self._project)
        reasons = _link_again(corpus, programs, self._toolchain, self._settings.jobs)
        if not reasons:
            return None
        lost = [Missing(self._project, f"link fails again: {n}: {r}") for n, r in reasons.items()]
        with locked(self._root / LOCK):
            now = store.load(self._root)
            kept = tuple(p for p in now.programs if p.name not in reasons)
            store.save(replace(now, programs=kept, missing=(*now.missing, *lost)))
        name, reason = next(iter(reasons.items()))
        detail = f"{len(reasons)} of {len(programs)} programs, {name} first: {reason}"
        if len(reasons) == len(programs):
            raise PackageError("link fails again", detail)
        return Failure(self._package, "link fails again", detail, partial=True)


def _link_again(
    corpus: Corpus, programs: Sequence[Program], toolchain: Toolchain, jobs: int
) -> dict[str, str]:
    """Return the programs that cannot be compiled and linked from the corpus alone, and why."""
    names = list(dict.fromkeys(name for program in programs for name in program.modules))
    failures: dict[str, str] = {}
    with temporary_folder("relink") as name:
        folder = Path(name)

        def compiled(number: int) -> str:
            module = corpus.module(names[number])
            out = folder / f"{number}.o"
            command = compile_command(toolchain, module.options, corpus.bitcode(module), out)
            outcome = process.run(command)
            return "" if outcome.ok else outcome.reason

        with ThreadPoolExecutor(max(1, jobs)) as pool:
            reasons = dict(zip(names, pool.map(compiled, range(len(names))), strict=True))
        objects = {n: folder / f"{i}.o" for i, n in enumerate(names) if not reasons[n]}
        for program in programs:
            bad = [n for n in program.modules if reasons[n]]
            if bad:
                failures[program.name] = f"{bad[0]}: {reasons[bad[0]]}"[:_MOST_LETTERS]
                continue
            out = folder / "program"
            outcome = process.run(link_command(toolchain, corpus, program, objects, out))
            if not outcome.ok:
                failures[program.name] = outcome.reason[:_MOST_LETTERS]
            out.unlink(missing_ok=True)
    return failures
