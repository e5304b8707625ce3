"""``nestor clang`` and ``nestor flags`` when nothing has to be looked up."""

from __future__ import annotations

import os
import sys

from nestor.cli.use.remembered import recall

TYPE_CHECKING = False  # as typing has it, whose import takes longer than all else here
if TYPE_CHECKING:
    from collections.abc import Sequence


def run(name: str, words: Sequence[str]) -> int | None:
    """Do what ``nestor NAME WORDS`` did the last time; None if that is not remembered.

    :return: the exit status of ``flags``; a compiler takes the place of this process.
    """
    if name == "flags":
        text = recall([name, *words])
        if text is None:
            return None
        try:
            sys.stdout.buffer.write(os.fsencode(text[0]) + b"\n")
            sys.stdout.flush()
        except BrokenPipeError:  # the reader has seen enough
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return 141
        return 0
    if "--" not in words:
        return None
    index = words.index("--")
    rest = words[index + 1 :]
    command = recall(key_of_clang(name, words[:index], by_lto=asks_for_lto(rest)))
    if command is None:
        return None
    return start(command, rest)


def start(command: Sequence[str], rest: Sequence[str]) -> int:
    """Become the compiler: run ``command`` with the user's own words ``rest``."""
    sys.stdout.flush()
    return os.execv(command[0], [*command, *rest])  # noqa: S606  as the user asked


def key_of_clang(name: str, own: Sequence[str], *, by_lto: bool) -> list[str]:
    """Return the words under which the command of ``nestor clang`` is remembered."""
    return [name, "link" if by_lto else "compile", *own]


def asks_for_lto(words: Sequence[str]) -> bool:
    """Tell whether the last word about LTO asks for it."""
    by_lto = False
    for word in words:
        if word == "-flto" or word.startswith("-flto="):
            by_lto = True
        elif word == "-fno-lto":
            by_lto = False
    return by_lto
