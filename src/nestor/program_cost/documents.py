"""Small JSON files with a format number, as penalties and weights are kept."""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

from nestor.errors import NestorError
from nestor.files import read_regular_text, write_atomically

Content = TypeVar("Content")


def save_document(
    content: Mapping[str, Any], version: int, path: Path, error: type[NestorError]
) -> None:
    """Write ``content`` with its format number.

    :raises error: if the file cannot be written; one that was there stays as it was.
    """
    text = json.dumps({"format": version, **content}, indent=2) + "\n"
    try:
        write_atomically(path, text)
    except OSError as reason:
        raise error(
            f"'{path}' cannot be written ({reason.strerror or reason}); choose another place."
        ) from None


def load_document(
    path: Path,
    what: str,
    version: int,
    limit: int,
    read: Callable[[Any], Content],
    error: type[NestorError],
    command: str,
) -> Content:
    """Return what ``read`` makes of the content of a file.

    :param what: what the file holds, for errors.
    :param limit: the most bytes of the file.
    :param command: what writes such files.
    :raises error: if it is of another kind.
    """
    text = read_regular_text(path, what, limit=limit)
    try:
        found = json.loads(text)
        if found["format"] != version:
            raise ValueError("it is of another version")
        return read(found)
    except (
        ValueError, TypeError, KeyError, AttributeError, RecursionError, OverflowError
    ) as reason:  # fmt: skip
        raise error(f"'{path}' has no {what} ({reason}); '{command}' writes them.") from None
