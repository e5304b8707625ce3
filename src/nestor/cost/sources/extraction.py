"""One way into all sources: look at what each is, and read it."""

import math
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path

from nestor.compiler.toolchain import Toolchain
from nestor.corpus import store
from nestor.corpus.layout import DESCRIPTION, MANIFEST
from nestor.cost.elf.binary import ObjectFileError
from nestor.cost.sources import bhive, compile_parquet, corpus, inputs, objects
from nestor.cost.sources.collection import Collection
from nestor.cost.sources.inputs import InputError
from nestor.cost.sources.settings import ExtractSettings
from nestor.errors import NestorError
from nestor.files import ReadError
from nestor.progress import Progress, silent


class SourceError(NestorError):
    """Something that blocks cannot be taken from."""


def extract(
    sources: Sequence[str | Path],
    toolchain: Callable[[], Toolchain],
    settings: ExtractSettings,
    progress: Progress = silent,
) -> Collection:
    """Return the blocks of all ``sources``.

    A source is an object, program or static library; a corpus; a folder of files of these kinds;
    a list (``.csv``); ComPile's bitcode (``.parquet``); or what ``inputs`` reads besides: assembly,
    a text of blocks in hexadecimal, or such a block itself. What cannot be read among the files of
    a folder is counted as a failure.

    :param toolchain: finds the compiler; called only where something must be compiled.
    :raises NestorError: if a source that is named cannot be read.
    """
    compiler = cache(toolchain)
    into = Collection()
    for word in sources:
        source = Path(word)
        if not inputs.exists(source):
            _add_hexadecimal(str(word), into)
        elif not (source.is_dir() or source.is_file()):
            raise SourceError(f"'{source}' is a named pipe or a device; name files or folders.")
        elif source.is_dir() and _is_corpus(source):
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
        elif source.suffix in inputs.ASSEMBLY_SUFFIXES and not objects.is_code(source):
            _add_assembly(inputs.text_of(source), str(source), settings.intel, compiler, into)
        elif objects.is_code(source):
            objects.read(source, into)
        else:
            _add_blocks(inputs.from_lines(inputs.text_of(source), str(source)), str(source), into)
    if settings.assembly is not None:
        _add_assembly(settings.assembly, "--assembly", settings.intel, compiler, into)
    return into


def _add_hexadecimal(word: str, into: Collection) -> None:
    try:
        block = inputs.block_of(word)
    except InputError:
        raise SourceError(
            f"There is no '{word[:40]}' to take blocks from, and it is no block in hexadecimal."
        ) from None
    _add_blocks([block], "hexadecimal", into)


def _add_blocks(blocks: Sequence[bytes], source: str, into: Collection) -> None:
    into.files += 1
    for block in blocks:
        into.add_row(block, source, 1.0, math.nan, math.nan)


def _add_assembly(
    text: str, name: str, intel: bool, toolchain: Callable[[], Toolchain], into: Collection
) -> None:
    with inputs.assembled(text, toolchain(), intel=intel) as object_file:
        objects.read(object_file, into, name)


def _is_corpus(folder: Path) -> bool:
    return (folder / MANIFEST).exists() or (folder / DESCRIPTION).exists()


def _read_folder(folder: Path, into: Collection, progress: Progress) -> None:
    if not folder.exists():
        raise SourceError(f"There is no '{folder}' to take blocks from; is the path right?")
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
        except (ObjectFileError, ReadError) as error:
            into.failures[str(error)] += 1
    progress("Reading", len(files), len(files))
