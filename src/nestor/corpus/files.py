"""Files of a corpus: their names and contents, read without trust."""

import json
from pathlib import Path, PurePosixPath
from typing import Any

from nestor.compiler.options import safe_cc1
from nestor.corpus.layout import JOURNAL
from nestor.corpus.model import CorpusError
from nestor.files import write_atomically

_LIMIT = 256 << 20


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


def read_options(path: Path) -> tuple[tuple[str, ...], int]:
    """Return the safe options of a ``.cmd`` file and how many others were left out."""
    try:
        words = path.read_bytes().decode().split("\0")
    except (OSError, UnicodeDecodeError) as error:
        raise CorpusError(f"{path} cannot be read ({error}); make the corpus again.") from error
    return safe_cc1([word for word in words if word])


def read_json(path: Path) -> dict[str, Any]:
    """Return the JSON object in a file; raises :class:`CorpusError`."""
    try:
        if path.stat().st_size > _LIMIT:
            raise CorpusError(f"{path} is larger than {_LIMIT >> 20} MiB and is not read.")
        value = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError) as error:
        raise CorpusError(f"{path} is not readable as JSON ({error}); make it again.") from error
    if not isinstance(value, dict):
        raise CorpusError(f"{path} is not a JSON object; make it again.")
    return value


def write_json(path: Path, value: object) -> None:
    """Write a JSON file atomically."""
    write_atomically(path, (json.dumps(value, indent=1) + "\n").encode())
