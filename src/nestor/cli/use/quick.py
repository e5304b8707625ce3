"""``nestor clang`` and ``nestor flags`` when nothing has to be looked up."""

from __future__ import annotations

import os
import sys

from nestor.cli.become import become
from nestor.cli.make.place import record, with_summary
from nestor.cli.use.remembered import recall
from nestor.corpus.lto_option import kind_of_link

TYPE_CHECKING = False  # as typing has it, whose import takes longer than all else here
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Never


def run(name: str, words: Sequence[str]) -> int | None:
    """Do what ``nestor NAME WORDS`` did the last time; None if that is not remembered.

    :return: the exit status of ``flags``; a compiler takes the place of this process.
    """
    if name == "flags":
        text = recall([name, *words])
        if text is None:
            return None
        try:
            write_line(text[0])
        except BrokenPipeError:  # the reader has seen enough
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return 141
        except OSError:
            return None  # who takes more time says what is wrong
        return 0
    if "--" not in words:
        return None
    index = words.index("--")
    rest = words[index + 1 :]
    own = with_summary(list(words[:index]), rest)
    command = recall(key_of_clang(name, own, kind_of_link(rest)))
    if command is None:
        return None
    return start(command, rest)


def write_line(text: str) -> None:
    """Print ``text``, with its paths as the bytes that they are.

    :raises OSError: if it cannot be written.
    """
    sys.stdout.buffer.write(os.fsencode(text) + b"\n")
    sys.stdout.flush()


def start(command: Sequence[str], rest: Sequence[str]) -> Never:
    """Become the compiler: run ``command`` with the user's own words ``rest``."""
    record(command[0], rest)
    become([*command, *rest], os.environ)


def key_of_clang(name: str, own: Sequence[str], lto: str) -> list[str]:
    """Return the words under which the command of ``nestor clang`` is remembered."""
    return [name, f"{lto} link" if lto else "compile", *own]
