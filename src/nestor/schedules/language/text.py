"""Read the text of a schedule far enough to take it apart and put it together again.

Schedules are MLIR, and mlir-opt is their parser. But a linked schedule must keep comments, names
and the place of every line, and mlir-opt prints none of them. So this module finds named sequences,
decisions and regions in the text, and leaves all else to mlir-opt.
"""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from nestor.errors import NestorError

_SKIPPED: Final = re.compile(r'//[^\n]*|"(?:[^"\\\n]|\\.)*"')
_CLOSING: Final = {"{": "}", "(": ")", "[": "]"}


class ScheduleError(NestorError):
    """A schedule is wrong; the text begins with the place, as ``file:line``."""


@dataclass(frozen=True)
class Place:
    """A line of a file."""

    file: Path
    line: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


def blanked(text: str) -> str:
    """Return a text of equal length without comments and without what is in quotation marks."""

    def blank(match: re.Match[str]) -> str:
        found = match[0]
        if found.startswith('"'):
            return '"' + " " * (len(found) - 2) + '"'
        return " " * len(found)

    return _SKIPPED.sub(blank, text)


def closing(code: str, start: int, place: Place) -> int:
    """Return where the bracket that opens at ``start`` of a blanked text closes.

    :param place: of the text, for the message.
    :raises ScheduleError: if it does not close.
    """
    stack: list[str] = []
    for index in range(start, len(code)):
        character = code[index]
        if character in _CLOSING:
            stack.append(_CLOSING[character])
        elif character in ")}]":
            if not stack or stack.pop() != character:
                break
            if not stack:
                return index
    raise ScheduleError(f"{place}: a bracket that opens here does not close.")


def line_of(text: str, index: int) -> int:
    """Return the number of the line, from 1, in which the character ``index`` stands."""
    return text.count("\n", 0, index) + 1
