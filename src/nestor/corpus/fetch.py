"""Fetching a tier: download, build under the wrappers, merge — project by project.

A project that is complete is not fetched again. One that fails is named, with the reason, in the
result and in the manifest, and the others go on.
"""

import hashlib
import tarfile
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import asdict, dataclass
from pathlib import Path

from nestor.compiler.toolchain import Toolchain
from nestor.corpus import build, debian, merge, store
from nestor.corpus.journal import FOLDER, Journal
from nestor.corpus.merge import Wanted
from nestor.corpus.model import Corpus, CorpusError, Missing, Project
from nestor.corpus.recipe import Recipe
from nestor.errors import NestorError
from nestor.progress import Progress, silent

_CAPTURE = 1
"""Raise it when capturing the same build gives another corpus: projects are then built again."""


@dataclass(frozen=True)
class Fetched:
    """The corpus after a fetch, and what happened to each project of the tier.

    ``fresh`` were built now, ``present`` were complete already, ``missing`` did not come.
    """

    corpus: Corpus
    fresh: tuple[str, ...]
    present: tuple[str, ...]
    missing: tuple[Missing, ...]


def fetch(
    recipes: Sequence[Recipe],
    root: Path,
    toolchain: Toolchain,
    jobs: int = 2,
    progress: Progress = silent,
) -> Fetched:
    """Bring the projects of ``recipes`` into the corpus at ``root``, ``jobs`` at a time.

    Raises :class:`NestorError` when there is no archive to fetch from, or ``root`` holds
    something else.
    """
    old = _existing(root)
    digests = {p.name: p.recipe for p in old.projects} if old else {}
    wanted = [r for r in recipes if digests.get(r.project) != recipe_digest(r, toolchain)]
    present = tuple(r.project for r in recipes if r not in wanted)
    if not wanted and old is not None:
        return Fetched(old, (), present, ())
    missing: list[Missing] = []
    fresh: list[str] = []
    with tempfile.TemporaryDirectory(prefix="nestor-fetch-") as name:
        work = Path(name).resolve()
        progress("fetch", 0, len(wanted))
        (work / "apt").mkdir()
        archive = debian.Archive(work / "apt")
        pool = ThreadPoolExecutor(max(1, jobs))
        tasks = {
            pool.submit(_build, archive, recipe, work / recipe.project, toolchain): recipe
            for recipe in wanted
        }
        try:
            for done, task in enumerate(as_completed(tasks), 1):
                recipe = tasks[task]
                try:
                    _merge(root, recipe, task.result(), toolchain)
                    fresh.append(recipe.project)
                except (NestorError, OSError, tarfile.TarError) as error:
                    lost = Missing(recipe.project, str(error).replace(f"{work}/", ""))
                    missing.append(lost)
                    merge.finalise(root, Journal(work / "none"), missing=[lost])
                progress("fetch", done, len(wanted))
        finally:
            pool.shutdown(cancel_futures=True)
    return Fetched(store.load(root), tuple(sorted(fresh)), present, tuple(missing))


def recipe_digest(recipe: Recipe, toolchain: Toolchain) -> str:
    """Return a sha256 that changes with the recipe or the compiler."""
    text = f"{_CAPTURE} {asdict(recipe)!r} {toolchain.version}"
    return hashlib.sha256(text.encode()).hexdigest()


def _existing(root: Path) -> Corpus | None:
    if (root / store.MANIFEST).exists():
        return store.load(root)
    if root.exists() and any(root.iterdir()):
        raise CorpusError(f"{root} is not empty and holds no corpus of ours; name a new folder.")
    return None


def _build(archive: debian.Archive, recipe: Recipe, work: Path, toolchain: Toolchain) -> Journal:
    """Download and build one project in ``work``; return the journal of its captures."""
    tarballs = archive.download(recipe.package, recipe.version, recipe.sources, work / "download")
    source = debian.extract(tarballs[0], work / "source")
    shop = build.Workshop(toolchain, work / "bin", work / "captured", recipe.project, source)
    shop.open()
    marks = {"@CC@": str(shop.cc), "@CXX@": str(shop.cxx), "@JOBS@": "1"}
    for step in recipe.steps:
        command = [_filled(word, marks) for word in step.command]
        build.run(command, source / step.folder, shop.environment(capture=step.capture))
    return Journal(shop.corpus / FOLDER)


def _merge(root: Path, recipe: Recipe, journal: Journal, toolchain: Toolchain) -> None:
    project = Project(
        name=recipe.project,
        version=recipe.version,
        licence=recipe.licence,
        sources=tuple(recipe.sources.items()),
        split=recipe.split,
        recipe=recipe_digest(recipe, toolchain),
    )
    wanted = [Wanted(project, recipe.programs)]
    corpus = merge.finalise(root, journal, wanted, toolchain=toolchain.version)
    if not any(p.name == recipe.project for p in corpus.projects):
        raise build.BuildError("the build compiled nothing")


def _filled(word: str, values: dict[str, str]) -> str:
    for mark, value in values.items():
        word = word.replace(mark, value)
    return word
