"""Files of a corpus: their names and contents, read without trust."""

import json
import stat
from pathlib import Path, PurePosixPath
from typing import Any

from nestor.compiler.options import safe_cc1
from nestor.corpus.layout import JOURNAL, LIMIT
from nestor.corpus.model import CorpusError
from nestor.files import ReadError, read_regular, write_atomically


def safe_name(name: object, root: Path) -> str:
    """Return ``name`` if it is a relative path that stays in ``root``, symbolic links included."""
    if isinstance(name, str) and 0 < len(name) < 1024 and name.isprintable():
        path = PurePosixPath(name)
        plain = str(path) == name and not path.is_absolute() and ".." not in path.parts
        hidden = any(part.startswith(JOURNAL) for part in path.parts)
        if plain and not hidden and name != "." and "\\" not in name:
            target = root / f"{name}.bc"
            if target.resolve().is_relative_to(root.resolve()):
                return name
    raise CorpusError(
        f"The corpus {root} names a file outside its folder ({name!r}); do not use this corpus."
    )


def read(path: Path, what: str) -> bytes:
    """Return the content of a file of a corpus.

    :param what: what it should hold, for the message.
    :raises CorpusError: if it cannot be read, is larger than :data:`LIMIT` or no regular file.
    """
    try:
        return read_regular(path, what, limit=LIMIT, remedy="make the corpus again")
    except ReadError as error:
        raise CorpusError(str(error)) from None


def require_regular(path: Path) -> None:
    """Refuse a file of a corpus that a compiler would wait for, or never finish reading.

    One that is absent passes: not every command needs every file.

    :raises CorpusError: if it is larger than :data:`LIMIT` or no regular file.
    """
    try:
        status = path.stat()
    except OSError:
        return
    if not stat.S_ISREG(status.st_mode):
        raise CorpusError(f"{path} is no regular file; do not use this corpus.")
    if status.st_size > LIMIT:
        raise CorpusError(
            f"{path} is larger than {LIMIT >> 20} MiB, too much for a file of a corpus; make the "
            "corpus again."
        )


def read_options(path: Path) -> tuple[tuple[str, ...], int]:
    """Return the safe options of a ``.cmd`` file and how many others were left out."""
    try:
        words = read(path, "the options of a module").decode().split("\0")
    except UnicodeDecodeError as error:
        raise CorpusError(f"{path} cannot be read ({error}); make the corpus again.") from error
    found = safe_cc1([word for word in words if word])
    return found.kept, found.dropped


def read_json(path: Path) -> dict[str, Any]:
    """Return the JSON object in a file; raises :class:`CorpusError`."""
    try:
        value = json.loads(read(path, "JSON"))
    except (ValueError, RecursionError) as error:
        raise CorpusError(f"{path} is not readable as JSON ({error}); make it again.") from error
    if not isinstance(value, dict):
        raise CorpusError(f"{path} is not a JSON object; make it again.")
    return value


def write_json(path: Path, value: object) -> None:
    """Write a JSON file atomically."""
    write_atomically(path, (json.dumps(value, indent=1) + "\n").encode())
