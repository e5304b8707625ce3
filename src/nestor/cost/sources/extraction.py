"""One way into all sources: look at what each is, and read it."""

from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path

from nestor.compiler.toolchain import Toolchain
from nestor.corpus import store
from nestor.corpus.layout import DESCRIPTION, MANIFEST
from nestor.cost.sources import bhive, compile_parquet, corpus, objects
from nestor.cost.sources.collection import Collection
from nestor.cost.sources.objects import ObjectFileError
from nestor.cost.sources.settings import ExtractSettings
from nestor.errors import NestorError
from nestor.progress import Progress, silent


class SourceError(NestorError):
    """Something that blocks cannot be taken from."""


def extract(
    sources: Sequence[Path],
    toolchain: Callable[[], Toolchain],
    settings: ExtractSettings,
    progress: Progress = silent,
) -> Collection:
    """Return the blocks of all ``sources``.

    A source is an object, program or static library; a corpus; a folder of files of these kinds;
    a list (``.csv``); or ComPile's bitcode (``.parquet``). What cannot be read among the files of a
    folder is counted as a failure.

    :param toolchain: finds the compiler; called only where something must be compiled.
    :raises NestorError: if a source that is named cannot be read.
    """
    compiler = cache(toolchain)
    into = Collection()
    for source in sources:
        if not source.exists():
            raise SourceError(f"There is no '{source}' to take blocks from.")
        if source.is_dir() and _is_corpus(source):
            corpus.read(
                store.load(source),
                compiler(),
                settings.compiling,
                into,
                settings.projects,
                progress,
            )
        elif source.is_dir():
            _read_folder(source, into, progress)
        elif source.suffix == ".csv":
            bhive.read(source, settings.columns, into)
        elif source.suffix == ".parquet":
            compile_parquet.read(
                source, settings.wanted, compiler(), settings.compiling, into, progress
            )
        else:
            objects.read(source, into)
    return into


def _is_corpus(folder: Path) -> bool:
    return (folder / MANIFEST).exists() or (folder / DESCRIPTION).exists()


def _read_folder(folder: Path, into: Collection, progress: Progress) -> None:
    files = sorted(f for f in folder.rglob("*") if f.is_file() and not f.is_symlink())
    files = [file for file in files if objects.is_code(file)]
    if not files:
        raise SourceError(
            f"'{folder}' is not a corpus and holds no object, program or library; name another"
            " folder."
        )
    for done, file in enumerate(files):
        progress("Reading", done, len(files))
        try:
            objects.read(file, into)
        except ObjectFileError as error:
            into.failures[str(error)] += 1
    progress("Reading", len(files), len(files))
