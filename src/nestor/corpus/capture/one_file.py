"""Capture the compile of one source file, with the numbers of its lines, into a corpus of its own.

For tools that look at one file of a build: from the compile's words, or from the
``compile_commands.json`` that has them.
"""

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from nestor.compiler.toolchain import Toolchain
from nestor.corpus.capture import build, merge
from nestor.corpus.capture.database import (
    DATABASE,
    WRITTEN_BY,
    DatabaseError,
    is_compiler,
    read_commands,
    without_launchers,
)
from nestor.corpus.capture.journal import Journal
from nestor.corpus.capture.response_files import expanded
from nestor.corpus.layout import JOURNAL
from nestor.corpus.level import LEVELS, Level, last_level, parse_level
from nestor.corpus.model import Corpus
from nestor.files import read_regular

_LIMIT = 1 << 30


def capture_words(
    words: Sequence[str], root: Path, toolchain: Toolchain, level: Level | None = None
) -> Corpus:
    """Capture one compile of this folder; nothing is built.

    :param words: the command, with or without the compiler's name.
    :param level: in place of the command's own.
    :raises DatabaseError: if clang cannot compile that, or it compiles nothing.
    """
    own = without_launchers(words)
    named = bool(own) and not own[0].startswith("-") and is_compiler(own[0])
    arguments = ["c++" if named and "++" in own[0] else "cc", *own[int(named) :]]
    sources = [word for word in arguments[1:] if Path(word).suffix and Path(word).is_file()]
    file = sources[0] if sources else "."
    item = {"directory": str(Path.cwd()), "arguments": arguments, "file": file}
    return _capture([item], root, toolchain, level)


def capture_file(
    file: str, database: Path, root: Path, toolchain: Toolchain, level: Level | None = None
) -> Corpus:
    """Capture the compiles of ``file`` that a ``compile_commands.json`` names.

    :param file: a path, or the last parts of one.
    :param database: the file, or the folder that holds it.
    :param level: in place of the commands' own.
    :raises DatabaseError: if it has none, or clang cannot compile it.
    """
    path = database / DATABASE if database.is_dir() else database
    try:
        content = read_regular(path, "commands", limit=_LIMIT, remedy=WRITTEN_BY)
        items = json.loads(content)
        found = [_absolute(item, path) for item in items if _is_of(item["file"], file)]
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise DatabaseError(f"{path} is no {DATABASE} ({error}).") from None
    if not found:
        raise DatabaseError(
            f"{path} compiles no {file}; of a header, name the compile of a file that includes it"
            " after --."
        )
    return _capture(found, root, toolchain, level)


def _is_of(path: str, wanted: str) -> bool:
    own, other = Path(os.path.normpath(path)).parts, Path(os.path.normpath(wanted)).parts
    return own[-len(other) :] == other or other[-len(own) :] == own


def _absolute(item: dict[str, Any], database: Path) -> dict[str, Any]:
    folder = (database.resolve().parent / item.get("directory", ".")).resolve()
    return {**item, "directory": str(folder)}


def _capture(
    items: list[dict[str, Any]], root: Path, toolchain: Toolchain, level: Level | None
) -> Corpus:
    root.mkdir(parents=True, exist_ok=True)
    database = root / DATABASE
    database.write_text(json.dumps(items), encoding="utf-8")
    at = level or _own_level(database)
    build.replay_database(database, root, "file", toolchain, at, 1, lines=True)
    corpus = merge.finalise(root, Journal(root / JOURNAL), toolchain=toolchain.version)
    if not corpus.modules:
        reason = corpus.missing[0].reason if corpus.missing else "it compiles no file"
        raise DatabaseError(f"The compile cannot be looked at: {reason}.")
    return corpus


def _own_level(database: Path) -> Level:
    """Return the optimisation level that the commands ask for."""
    commands = read_commands(database).compilations
    found = sorted({last_level(expanded(command.arguments)) for command in commands})
    if len(found) > 1 or found[0] not in LEVELS:
        raise DatabaseError(
            f"The file is compiled at {' and '.join(found)}: name one of {', '.join(LEVELS)} with"
            " --level."
        )
    return parse_level(found[0])
