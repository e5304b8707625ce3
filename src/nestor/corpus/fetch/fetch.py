"""Fetch a tier: download, build under the wrappers, merge, project by project.

A project that is complete is not fetched again. One that fails is named, with the reason, in the
result and in the manifest, and the others go on.
"""

import hashlib
import tarfile
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

from nestor.compiler.toolchain import Toolchain
from nestor.corpus import store
from nestor.corpus.capture import build, merge
from nestor.corpus.capture.drafts import Selection
from nestor.corpus.capture.journal import Journal
from nestor.corpus.fetch import debian
from nestor.corpus.fetch.recipe import Recipe
from nestor.corpus.layout import JOURNAL, MANIFEST
from nestor.corpus.level import DEFAULT_LEVEL, Level
from nestor.corpus.model import Corpus, CorpusError, Missing, Program, Project
from nestor.errors import NestorError
from nestor.files import write_atomically
from nestor.progress import Progress, silent
from nestor.temporary import temporary_folder

_CAPTURE = 1
"""Raise it when capturing the same build gives another corpus: projects are then built again."""

# Messages, and the order in which a shell lists files, must not depend on the user's language.
_LOCALE = {"LC_ALL": "C"}


_Runs = TypeVar("_Runs")


@dataclass(frozen=True)
class Fetched:
    """The corpus after a fetch, and what happened to each project of the tier.

    ``built`` were built now, ``present`` were complete already, ``missing`` could not be built.
    """

    corpus: Corpus
    built: tuple[str, ...]
    present: tuple[str, ...]
    missing: tuple[Missing, ...]


def fetch(
    recipes: Sequence[Recipe],
    root: Path,
    toolchain: Toolchain,
    jobs: int = 2,
    progress: Progress = silent,
    level: Level = DEFAULT_LEVEL,
) -> Fetched:
    """Bring the projects of ``recipes`` into the corpus at ``root``, ``jobs`` at a time.

    :param level: the optimisation level at which the modules are made.
    :raises NestorError: when there is no archive to fetch from, when no project of a new corpus
        could be had, or when ``root`` holds something else or a corpus of another level.
    """
    old = store.to_complete(root, level)
    digests = {p.name: p.recipe for p in old.projects} if old else {}
    old = _relabelled(old, recipes) if old else None
    mixed = _mixed(old) if old else set()
    absent = [
        r
        for r in recipes
        if r.project in mixed or digests.get(r.project) != recipe_digest(r, toolchain, level)
    ]
    present = tuple(r.project for r in recipes if r not in absent)
    if not absent and old is not None:
        return Fetched(old, (), present, ())
    missing: list[Missing] = []
    built: list[str] = []
    with temporary_folder("fetch") as name:
        work = Path(name).resolve()
        progress("fetch", 0, len(absent))
        (work / "apt").mkdir()
        archive = debian.Archive(work / "apt")
        pool = ThreadPoolExecutor(max(1, jobs))
        tasks = {
            pool.submit(_build, archive, recipe, work / recipe.project, toolchain, level): recipe
            for recipe in absent
        }
        try:
            for done, task in enumerate(as_completed(tasks), 1):
                recipe = tasks[task]
                try:
                    _merge(root, recipe, *task.result(), toolchain, level)
                    built.append(recipe.project)
                except (NestorError, OSError, tarfile.TarError) as error:
                    lost = Missing(recipe.project, str(error).replace(f"{work}/", ""))
                    missing.append(lost)
                progress("fetch", done, len(absent))
        finally:
            pool.shutdown(cancel_futures=True)
        if not (root / MANIFEST).exists():
            raise CorpusError(_nothing(root, missing))
        if missing:
            merge.finalise(root, Journal(work / "none"), missing=missing)
    return Fetched(store.load(root), tuple(sorted(built)), present, tuple(missing))


def _nothing(root: Path, missing: Sequence[Missing]) -> str:
    """Say why there is no corpus, each reason with its first project."""
    reasons = {lost.reason: lost.project for lost in reversed(missing)}
    text = "; ".join(f"{project}: {reason}" for reason, project in reversed(reasons.items()))
    return f"No project could be fetched, so there is no corpus at {root}: {text}"


def recipe_digest(recipe: Recipe, toolchain: Toolchain, level: Level = DEFAULT_LEVEL) -> str:
    """Return a sha256 that changes with what is built, the compiler or the level.

    What is only said about a project (split, style, licence, arguments of runs) plays no part.
    """
    built = (
        recipe.project, recipe.version, sorted(recipe.sources.items()), recipe.steps,
        sorted(recipe.programs), sorted(recipe.inputs.items()),
    )  # fmt: skip
    text = f"{_CAPTURE} {built!r} {toolchain.version}"
    if recipe.workloads:  # only modules that programs link are taken then
        text += f" linked {sorted(recipe.workload_inputs.items())!r}"
    if level != DEFAULT_LEVEL:  # corpora of the default level are older than the choice
        text += f" {level}"
    return hashlib.sha256(text.encode()).hexdigest()


def _relabelled(corpus: Corpus, recipes: Sequence[Recipe]) -> Corpus:
    """Give the projects of ``corpus`` the split, style and runs of today's recipes."""
    by_project = {recipe.project: recipe for recipe in recipes}
    projects = tuple(
        replace(p, split=r.split, style=r.style, licence=r.licence) if r else p
        for p, r in ((p, by_project.get(p.name)) for p in corpus.projects)
    )
    programs = tuple(
        replace(
            p,
            smoke=_run_of(p, r.programs, p.smoke),
            workload=_run_of(p, r.workloads, p.workload),
        )
        if r
        else p
        for p, r in ((p, by_project.get(p.project)) for p in corpus.programs)
    )
    new = replace(corpus, projects=projects, programs=programs)
    if new != corpus:
        store.save(new)
    return new


def _run_of(program: Program, runs: Mapping[str, _Runs], otherwise: _Runs) -> _Runs:
    """Return what a recipe says of a program, by the name of the built file or the end of it."""
    name = program.name.partition("/")[2]
    found = (run for built, run in runs.items() if name in (built, built.rpartition("/")[2]))
    return next(found, otherwise)


def _mixed(corpus: Corpus) -> set[str]:
    """Return the projects whose programs use a module of a less held-out project.

    Equal modules of two projects are kept once, by the more held-out one. After a project has
    changed its split that may be the wrong one; building the project again puts it right.
    """
    order = {"test": 0, "validation": 1, "train": 2}
    rank = {name: order[split] for name, split in corpus.splits.items()}
    return {
        program.project
        for program in corpus.programs
        for name in program.modules
        if rank[corpus.module(name).project] > rank[program.project]
    }


def _build(
    archive: debian.Archive, recipe: Recipe, work: Path, toolchain: Toolchain, level: Level
) -> tuple[Journal, dict[str, bytes]]:
    """Download and build one project in ``work``; return its captures and its inputs."""
    tarballs = archive.download(recipe.package, recipe.version, recipe.sources, work / "download")
    source = debian.extract(tarballs[0], work / "source")
    wrappers = build.Wrappers(
        toolchain, work / "bin", work / "captured", recipe.project, source, level
    ).write()
    marks = {
        "@CC@": wrappers.word(wrappers.cc),
        "@CXX@": wrappers.word(wrappers.cxx),
        "@JOBS@": "1",
    }
    for step in recipe.steps:
        command = [_filled(word, marks) for word in step.command]
        environment = wrappers.environment(capture=step.capture) | _LOCALE
        build.run(command, source / step.folder, environment)
    inputs = {name: (source / path).read_bytes() for name, path in recipe.inputs.items()}
    inputs |= {name: file.content(source) for name, file in recipe.workload_inputs.items()}
    return Journal(wrappers.corpus / JOURNAL), inputs


def _merge(
    root: Path,
    recipe: Recipe,
    journal: Journal,
    inputs: Mapping[str, bytes],
    toolchain: Toolchain,
    level: Level,
) -> None:
    digests = {name: hashlib.sha256(content).hexdigest() for name, content in inputs.items()}
    project = Project(
        name=recipe.project,
        version=recipe.version,
        licence=recipe.licence,
        sources=tuple(recipe.sources.items()),
        split=recipe.split,
        recipe=recipe_digest(recipe, toolchain, level),
        style=recipe.style,
        inputs=tuple(sorted(digests.items())),
    )
    for name, content in inputs.items():
        write_atomically(Corpus(root).input(digests[name]), content)
    linked_only = bool(recipe.workloads)
    selections = [Selection(project, recipe.programs, recipe.workloads, linked_only=linked_only)]
    corpus = merge.finalise(root, journal, selections, toolchain=toolchain.version)
    if not any(p.name == recipe.project for p in corpus.projects):
        raise build.BuildError("the build compiled nothing")


def _filled(word: str, values: dict[str, str]) -> str:
    for mark, value in values.items():
        word = word.replace(mark, value)
    return word
