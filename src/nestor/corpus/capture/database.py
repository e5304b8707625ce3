"""The commands of a build that was configured, or run, without the wrappers.

Compilations come from a ``compile_commands.json`` or from Ninja. That file has no links; they come
from Ninja's build file beside it, or from the ``link.txt`` files of CMake's makefiles.
"""

import json
import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nestor.corpus.capture.response_files import expanded
from nestor.errors import NestorError
from nestor.files import read_regular

_COMPILER = re.compile(r"(.*-)?(cc|c\+\+|gcc|g\+\+|clang|clang\+\+)(-[\d.]+)?")
_LAUNCHERS = frozenset({"ccache", "sccache", "distcc", "icecc", "nestor"})
_BETWEEN = frozenset({"&&", "||", ";"})
DATABASE = "compile_commands.json"
WRITTEN_BY = "write it with 'cmake -DCMAKE_EXPORT_COMPILE_COMMANDS=ON' or 'bear'"
_LIMIT = 1 << 30


class DatabaseError(NestorError):
    """What was named holds no commands; the text says how to write them."""


@dataclass(frozen=True)
class Command:
    """One call of a compiler: a compilation or a link."""

    directory: Path
    arguments: tuple[str, ...]
    """Its words after the compiler."""
    language: str
    """``"c"`` or ``"c++"``, the driver's."""


@dataclass(frozen=True)
class Commands:
    """The commands of a build."""

    compilations: tuple[Command, ...]
    links: tuple[Command, ...]
    """Those of programs; empty if nothing beside the database names them."""
    folder: Path
    """The folder of the build."""
    source: Path
    """The deepest folder that has all sources in it."""


def read_commands(place: Path) -> Commands:
    """Return the commands of a ``compile_commands.json``, or of the folder of a build.

    :raises DatabaseError: if there are none, or what is there cannot be read.
    """
    database = place / DATABASE if place.is_dir() else place
    folder = database.resolve().parent  # The file may be a link from the sources into the build.
    of_ninja = _ninja(folder)
    if not database.exists() and not of_ninja:
        raise DatabaseError(
            f"There is no {database} and no build by Ninja; write it with 'bear' or with "
            f"'cmake -DCMAKE_EXPORT_COMPILE_COMMANDS=ON {folder}', which builds nothing."
        )
    if database.exists():
        found = _read(database)
    else:
        found = [item for item in of_ninja if "-c" in _compiler_words(item.get("command", ""))]
    try:
        compilations = [_compilation(item, folder) for item in found]
        sources = [_file(item, folder).parent for item in found]
        links = [_command(folder / item["directory"], item["command"]) for item in of_ninja]
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise DatabaseError(_unreadable(database, error)) from error
    if not compilations:
        raise DatabaseError(f"{place} names no compilation; configure the project first.")
    links += _link_files(folder)
    programs = tuple(c for c in dict.fromkeys(links) if c is not None and _links_program(c))
    source = Path(os.path.commonpath(sources))
    return Commands(tuple(compilations), programs, folder, source)


def is_compiler(word: str) -> bool:
    """Tell whether a word of a command line is the name of a C or C++ compiler."""
    return _COMPILER.fullmatch(Path(word).name) is not None


def is_built(link: Command) -> bool:
    """Tell whether the file that ``link`` makes exists."""
    words = expanded(link.arguments)
    return (link.directory / words[words.index("-o") + 1]).is_file()


def _read(database: Path) -> list[dict[str, Any]]:
    try:
        items = json.loads(read_regular(database, DATABASE, limit=_LIMIT))
    except (ValueError, RecursionError) as error:
        raise DatabaseError(_unreadable(database, error)) from error
    if not isinstance(items, list) or not all(isinstance(item, dict) for item in items):
        raise DatabaseError(_unreadable(database, ValueError("no list of commands")))
    return items


def _unreadable(database: Path, error: Exception) -> str:
    return f"{database} is no {DATABASE} ({type(error).__name__}: {error}); {WRITTEN_BY}."


def _ninja(folder: Path) -> list[dict[str, Any]]:
    """Return all commands that Ninja would run in ``folder``; nothing without its build file."""
    ninja = shutil.which("ninja") or shutil.which("ninja-build")
    if ninja is None or not (folder / "build.ninja").is_file():
        return []
    done = subprocess.run(
        [ninja, "-C", str(folder), "-t", "compdb", "-x"], capture_output=True, check=False
    )
    try:
        items: list[dict[str, Any]] = json.loads(done.stdout)
    except ValueError:
        return []
    return items


def _link_files(folder: Path) -> Iterator[Command | None]:
    """Yield the commands of CMake's makefiles: CMake runs ``link.txt`` above ``CMakeFiles``."""
    for path in sorted(folder.rglob("CMakeFiles/*.dir/link.txt")):
        for line in path.read_text(encoding="utf-8", errors="surrogateescape").splitlines():
            yield _command(path.parents[2], line)


def _compilation(item: dict[str, Any], beside: Path) -> Command:
    words = item["arguments"] if "arguments" in item else shlex.split(item["command"])
    words = without_launchers(words)
    if not words or not all(isinstance(word, str) for word in words):
        raise ValueError("an entry has no words")
    directory = (beside / item.get("directory", ".")).resolve()
    return Command(directory, tuple(words[1:]), _language(words[0]))


def _file(item: dict[str, Any], beside: Path) -> Path:
    directory = (beside / item.get("directory", ".")).resolve()
    return Path(os.path.normpath(directory / item["file"]))


def _command(directory: Path, line: str) -> Command | None:
    words = _compiler_words(line)
    if not words:
        return None
    return Command(directory.resolve(), tuple(words[1:]), _language(words[0]))


def _language(compiler: str) -> str:
    """Return the driver's language: clang++ takes all for C++, clang goes by a source's name."""
    return "c++" if "++" in Path(compiler).name else "c"


def _compiler_words(line: str) -> list[str]:
    """Return the first call of a compiler in a line of shell; nothing if there is none."""
    call: list[str] = []
    for word in [*shlex.split(line), ";"]:
        if word not in _BETWEEN:
            call.append(word)
            continue
        call = without_launchers(call)
        if call and is_compiler(call[0]):
            return call
        call = []
    return []


def without_launchers(words: Sequence[str]) -> list[str]:
    """Return a command without what stands before its compiler in many builds, such as ccache."""
    rest = list(words)
    while rest and Path(rest[0]).name in _LAUNCHERS:
        del rest[0]
    return rest


def _links_program(command: Command) -> bool:
    words = expanded(command.arguments)
    return "-o" in words[:-1] and {"-c", "-shared", "-E", "-S", "-r"}.isdisjoint(words)
