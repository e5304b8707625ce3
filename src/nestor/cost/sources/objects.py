"""Blocks of object files, programs and libraries (ELF, x86-64).

Functions are those that ``nestor.cost.elf.binary`` finds; an executable section that names none is
taken as one function. Where the file has a basic-block address map the blocks are those of the map,
elsewhere they come from disassembly (``splitting``).
"""

import itertools
from pathlib import Path

from nestor.corpus.archive import ArchiveError, is_archive, members
from nestor.cost.elf import binary
from nestor.cost.elf.binary import ELF_MAGIC, LARGEST_OBJECT, Function, ObjectFileError, Place
from nestor.cost.elf.block_map import Block
from nestor.cost.sources.collection import Collection
from nestor.cost.sources.splitting import Pieces, split
from nestor.files import read_regular


def read(path: Path, into: Collection, name: str | None = None) -> None:
    """Add the blocks of a file to ``into``; ``name`` says in the table where they are from.

    Members of a library that are not x86-64 objects are counted as failures.

    :raises NestorError: if the file cannot be read, or is nothing of the kind.
    """
    source = name or str(path)
    try:
        archive = path.is_file() and is_archive(_head(path))
    except OSError as error:
        raise ObjectFileError(f"'{path}' cannot be read ({error.strerror}).") from error
    if archive:
        _read_library(path, source, into)
        return
    content = read_regular(path, "code", limit=LARGEST_OBJECT)
    try:
        read_object(content, source, into)
    except ObjectFileError as error:
        raise ObjectFileError(f"'{path}': {error}") from error


def _read_library(path: Path, source: str, into: Collection) -> None:
    try:
        for member, body in members(path):
            try:
                read_object(body, f"{source}({member})", into)
            except ObjectFileError as error:
                into.failures[str(error)] += 1
    except ArchiveError as error:
        raise ObjectFileError(f"'{path}' {error}; build it again.") from error


def _head(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(8)


def is_code(path: Path) -> bool:
    """Tell whether a file begins like an object, a program or a library."""
    try:
        head = _head(path) if path.is_file() else b""  # a named pipe would wait for a writer
    except OSError:
        return False
    return head.startswith(ELF_MAGIC) or is_archive(head)


def read_object(content: bytes, source: str, into: Collection) -> None:
    """Add the blocks of one ELF file to ``into``.

    :raises ObjectFileError: if it cannot be read, or is for another CPU.
    """
    found = binary.read(content)
    if found.map_error:
        into.failures[found.map_error] += 1
    blocks = {part.place: part.blocks for one in found.mapped for part in one.ranges}
    into.files += 1
    for index, section in found.sections.items():
        named = found.functions.get(index) or (Function((), 0, len(section.code)),)
        for function in binary.apart(named):
            ranges = blocks.get(Place(index, function.start))
            code = section.code[function.start : function.start + function.size]
            if ranges is None:
                pieces = split(code)
            else:
                pieces = _cut(code, ranges)
                into.mapped += 1
            into.add_function(pieces, source, function.name)


def _cut(code: bytes, blocks: tuple[Block, ...]) -> Pieces:
    """Return the blocks of a map, cut further at calls, which LLVM's own blocks run through.

    The filling that aligns the next block belongs to the block that runs through it.
    """
    pieces = Pieces()
    starts = [block.offset for block in blocks[1:]]
    for block, following in itertools.zip_longest(blocks, starts):
        end = block.offset + block.size
        if block.falls_through and following is not None:
            end = max(end, following)
        part = split(code[block.offset : end])
        pieces.blocks += part.blocks
        pieces.empty += part.empty
        pieces.undecodable += part.undecodable
    return pieces
