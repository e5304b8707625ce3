"""What the commands of ``nestor schedule`` share: libraries, payloads, choices."""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from nestor.errors import NestorError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from nestor.schedules.language.decisions import Decision
    from nestor.schedules.language.library import Library
    from nestor.schedules.payload.reading import Payload
    from nestor.schedules.target import Target
    from nestor.schedules.tools import Tools
    from nestor.schedules.tune.database import Database


@dataclass(frozen=True)
class Opened:
    """A payload with the schedule and the answers that it is to be lowered by."""

    tools: "Tools"
    target: "Target"
    library: "Library"
    payload: "Payload"
    schedule: str
    choice: dict[str, int]


def open_payload(
    payload: Path,
    function: str | None,
    library: tuple[Path, ...],
    schedule: str | None,
    words: tuple[str, ...],
    target: str,
    llvm: str | None,
    *,
    runs: bool = False,
    threads: int = 1,
) -> Opened:
    """Read a payload and decide on all that the command line leaves open.

    :param library: files and folders of the user's, on top of the packaged library.
    :param words: answers to decisions, such as ``tile_m=64``.
    :param runs: whether the kernel is to run here, so that the target must be this machine's.
    """
    from nestor.schedules.kernel.evaluate import Task
    from nestor.schedules.language.linking import decisions_of
    from nestor.schedules.payload.reading import read_payload
    from nestor.schedules.target import find_own_target, find_target
    from nestor.schedules.tools import find_tools
    from nestor.schedules.tune.tuning import first_choice

    tools, machine = find_tools(llvm), (find_own_target if runs else find_target)(target)
    opened = open_library(library)
    content = read_payload(payload, tools, function=function)
    name = schedule_for(content, opened, schedule)
    decisions = decisions_of(opened, name)
    fixed = answers_in(words, name, decisions) | shared_among(threads, decisions, words)
    choice = first_choice(Task(content, opened, name, machine, tools, fixed=fixed))
    return Opened(tools, machine, opened, content, name, choice)


def open_library(paths: tuple[Path, ...]) -> "Library":
    """Return the packaged library with the user's files and folders on top."""
    from nestor.schedules.language.library import PACKAGED, load

    for path in paths:
        if not path.exists():
            raise NestorError(f"There is no schedule at {path}.")
    return load([PACKAGED, *paths])


def schedule_for(payload: "Payload", library: "Library", name: str | None) -> str:
    """Return the schedule that was named, or the packaged one that suits the payload."""
    from nestor.schedules.payload.loops import suggest

    return library.find(name or suggest(payload)).name


def answers_in(
    words: tuple[str, ...], schedule: str, decisions: "Sequence[Decision]"
) -> dict[str, int]:
    """Return the answers of the command line.

    :param words: such as ``tile_m=64``.
    :raises NestorError: if one is no answer to a decision of the schedule.
    """
    from nestor.schedules.language.linking import check_names

    answers = {}
    for word in words:
        name, equals, value = word.partition("=")
        if not equals or not value.lstrip("-").isdigit():
            raise NestorError(f"'{word}' is no answer to a decision; write NAME=NUMBER.")
        check_names([name], schedule, decisions)
        answers[name] = int(value)
    return answers


def shared_among(
    threads: int, decisions: "Iterable[Decision]", words: tuple[str, ...] = ()
) -> dict[str, int]:
    """Return the answer that lets several threads share a loop, unless the words say otherwise.

    :raises NestorError: if there are to be several threads and the schedule cannot share a loop.
    """
    if threads < 2:
        return {}
    if "parallel" not in {d.name for d in decisions}:
        raise NestorError("The schedule has no decision 'parallel', so it runs on one thread.")
    return {} if any(word.startswith("parallel=") for word in words) else {"parallel": 1}


def written(choice: dict[str, int]) -> str:
    """Return a choice as the command line takes it."""
    return " ".join(f"{name}={value}" for name, value in choice.items())


def database_at(path: Path | None, *, writes: bool = True) -> "Database":
    """Return the database of results in a file, or the usual one.

    :param writes: whether results will be added; else it must be there.
    :raises NestorError: if it is no database, is absent, or cannot be written.
    """
    from nestor.compiler.cache import cache_place
    from nestor.schedules.tune.database import Database

    file = path or Path(cache_place()) / "schedules.sqlite"
    if not writes and not file.exists():
        raise NestorError(
            f"There is no database of results at {file}: 'nestor schedule tune' makes one."
        )
    database = Database(file)
    if writes and not (os.access(file, os.W_OK) and os.access(file.parent, os.W_OK)):
        raise NestorError(
            f"{file} or its folder is read-only, and results are added to it: name another with"
            " --database."
        )
    return database
