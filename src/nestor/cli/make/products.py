"""Time stamps after which a build system links again, and compiles nothing.

make compares times of files, so an object that was made again is newer than what was linked from
it, and so is the ``.lo`` file that stands for it under libtool. Ninja also keeps the times of
objects beside their header files, and would compile what is newer than it wrote down: there the
objects keep their times, and what was linked from them is made older.
"""

import os
import struct
from pathlib import Path
from typing import Final

_LIBTOOL: Final = b"libtool object file"
_LINKED: Final = (b"\x7fELF", b"!<arch>\n", b"!<thin>\n")
_LOG: Final = ".ninja_log"
_OLD: Final = (1, 1)
"""Seconds since the epoch; to ninja, 0 means that there is no file."""
_RELOCATABLE: Final = (1).to_bytes(2, "little")
_OUTPUT_COLUMN: Final = 3

_ELF64: Final = b"\x7fELF\x02\x01"
"""How a file begins in that format, in little-endian order."""
_HEADER: Final = struct.Struct("<16sHHIQQQIHHHHHH")
"""``Elf64_Ehdr``, and the places of four of its fields."""
_SECTIONS, _ENTRY_SIZE, _ENTRIES, _NAMES = 6, 11, 12, 13
_SECTION: Final = struct.Struct("<IIQQQQIIQQ")
"""``Elf64_Shdr``, and the places of three of its fields."""
_TYPE, _OFFSET, _LENGTH = 1, 4, 5
_ADDRESS_SIGNIFICANCE: Final = 0x6FFF4C03
"""``SHT_LLVM_ADDRSIG``."""


def ninja_folder(path: Path) -> Path | None:
    """Return the build folder of ninja that holds ``path``, if there is one."""
    return next((folder for folder in path.parents if (folder / _LOG).is_file()), None)


def mark_new(path: Path) -> None:
    """Make what stands for an object newer than what was linked from it, under make."""
    if ninja_folder(path) is not None:
        return
    above = path.parent.parent if path.parent.name == ".libs" else path.parent
    library_object = above / f"{path.stem}.lo"
    if library_object.is_file() and _LIBTOOL in library_object.read_bytes()[:200]:
        os.utime(library_object)


def make_older(folder: Path) -> None:
    """Make everything older that ninja has linked or archived in its build folder."""
    for line in (folder / _LOG).read_text(errors="surrogateescape").splitlines():
        columns = line.split("\t")
        if line.startswith("#") or len(columns) <= _OUTPUT_COLUMN:
            continue
        path = folder / columns[_OUTPUT_COLUMN]
        if path.is_file() and _is_linked(path):
            os.utime(path, _OLD)


def with_settled_sections(content: bytes) -> bytes:
    """Return an object in which an empty section has the place that the compiler gives it.

    Where sections were removed, the list of symbols whose address matters keeps its old offset in
    the file if it is empty; the compiler writes it just before the table of strings.
    """
    if not content.startswith(_ELF64):
        return content
    data = bytearray(content)
    header = _HEADER.unpack_from(data)
    start, size = header[_SECTIONS], header[_ENTRY_SIZE]
    strings = _SECTION.unpack_from(data, start + header[_NAMES] * size)[_OFFSET]
    for place in range(start, start + header[_ENTRIES] * size, size):
        fields = list(_SECTION.unpack_from(data, place))
        if fields[_TYPE] == _ADDRESS_SIGNIFICANCE and fields[_LENGTH] == 0:
            fields[_OFFSET] = strings
            _SECTION.pack_into(data, place, *fields)
    return bytes(data)


def _is_linked(path: Path) -> bool:
    with path.open("rb") as file:
        start = file.read(18)
    return start.startswith(_LINKED) and not (
        start.startswith(_LINKED[0]) and start[16:18] == _RELOCATABLE
    )
