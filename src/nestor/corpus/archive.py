"""Members of a static library (``ar``): System V and GNU long names, and thin archives.

No library on our list reads archives, and LIEF does not; the format is sixty bytes a member.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from nestor.files import read_regular

LIMIT: Final = 1 << 30
"""The most bytes of a library, or of an object, that are read."""

_MAGIC = b"!<arch>\n"
_THIN = b"!<thin>\n"
_HEADER = 60
_TABLES = (b"/", b"/SYM64/", b"//")
_BSD_TABLE = "__.SYMDEF"


class ArchiveError(Exception):
    """The file is not an archive that we can read; the text goes on from the file's name."""


def is_archive(start: bytes) -> bool:
    """Tell from its first 8 bytes whether a file is an archive."""
    return start[:8] in (_MAGIC, _THIN)


def members(path: Path) -> Iterator[tuple[str, bytes]]:
    """Yield name and content of every member of the archive at ``path``, in order.

    The symbol index and the table of long names are no members. Raises :class:`ArchiveError`
    for a damaged archive, after the members before the damage, and
    :class:`~nestor.files.ReadError` when it, or a member of a thin archive, cannot be read.
    """
    data = read_regular(path, "a static library", limit=LIMIT)
    if not is_archive(data):
        raise ArchiveError("is no archive")
    thin = data[:8] == _THIN
    long_names = b""
    offset = 8
    while offset < len(data):
        header = data[offset : offset + _HEADER]
        if header[58:] != b"`\n":
            raise ArchiveError(f"is damaged at byte {offset:,}")
        offset += _HEADER
        name = header[:16].rstrip()
        digits = header[48:58].rstrip()
        if not digits.isdigit():
            raise ArchiveError(f"is damaged at byte {offset:,}")
        size = int(digits)
        if name in _TABLES:
            if offset + size > len(data):
                raise ArchiveError("is cut short")
            if name == b"//":
                long_names = data[offset : offset + size]
            offset += size + size % 2
            continue
        stored = 0 if thin else size
        if offset + stored > len(data):
            raise ArchiveError("is cut short")
        content = data[offset : offset + stored]
        offset += stored + stored % 2
        text, content = _named(name, content, long_names)
        if text.startswith(_BSD_TABLE):
            continue
        yield text, _thin_member(path, text) if thin else content


def _thin_member(path: Path, name: str) -> bytes:
    return read_regular(path.parent / name, f"a member of {path}", limit=LIMIT)


def _named(name: bytes, content: bytes, long_names: bytes) -> tuple[str, bytes]:
    """Return the member's full name, and its content without a BSD name in front."""
    if name.startswith(b"#1/") and name[3:].isdigit():
        length = int(name[3:])
        return content[:length].rstrip(b"\0").decode(errors="surrogateescape"), content[length:]
    if name.startswith(b"/") and name[1:].isdigit():
        start = int(name[1:])
        if start >= len(long_names):
            raise ArchiveError("is damaged: a name lies outside the table of long names")
        # GNU ends a long name with "/\n"; a thin archive's names contain slashes themselves.
        name = long_names[start:].split(b"\n", 1)[0]
    return name.removesuffix(b"/").decode(errors="surrogateescape"), content
