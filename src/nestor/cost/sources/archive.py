"""Read the members of a static library (``.a``), in the format that GNU and LLVM tools write."""

from collections.abc import Iterator
from typing import Final

from nestor.errors import NestorError

MAGIC: Final = b"!<arch>\n"
THIN_MAGIC: Final = b"!<thin>\n"
_HEADER: Final = 60
_NOT_OBJECTS: Final = frozenset({"/", "/SYM64/", "__.SYMDEF", "__.SYMDEF SORTED"})


class ArchiveError(NestorError):
    """A static library that cannot be read."""


def members(content: bytes) -> Iterator[tuple[str, bytes]]:
    """Yield name and content of every member of a library but its tables.

    :raises ArchiveError: if the library is thin (it names files instead of holding them) or cut
        short; members before the damage are yielded first.
    """
    if content.startswith(THIN_MAGIC):
        raise ArchiveError("The library is thin and holds no code; name its objects instead.")
    if not content.startswith(MAGIC):
        raise ArchiveError("The file is no static library.")
    names = b""
    at = len(MAGIC)
    while at < len(content):
        header = content[at : at + _HEADER]
        size_text = header[48:58].strip()
        if len(header) < _HEADER or header[58:60] != b"`\n" or not size_text.isdigit():
            raise ArchiveError(f"The library is damaged at byte {at:,}; build it again.")
        start = at + _HEADER
        size = int(size_text)
        body = content[start : start + size]
        if len(body) < size:
            raise ArchiveError("The library is cut short; build it again.")
        at = start + size + size % 2
        name = header[:16].decode("latin-1").rstrip()
        if name == "//":
            names = body
        elif name not in _NOT_OBJECTS:
            name, body = _named(name, names, body)
            yield name, body


def _named(name: str, names: bytes, body: bytes) -> tuple[str, bytes]:
    """Return the full name of a member, and its content without it."""
    if name.startswith("/") and name[1:].isdigit():  # GNU: an offset into the table of names
        long = names[int(name[1:]) :].split(b"\n", 1)[0]
        return long.decode(errors="replace").rstrip("/"), body
    if name.startswith("#1/") and name[3:].isdigit():  # BSD: the name stands before the content
        length = int(name[3:])
        return body[:length].rstrip(b"\0").decode(errors="replace"), body[length:]
    return name.rstrip("/"), body
