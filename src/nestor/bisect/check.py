"""The command that tells good programs from bad ones, as the user gives it."""

import enum
import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from nestor.compiler.process import Ending, Limits, run
from nestor.errors import NestorError

PLACE: Final = "{}"
"""Stands for the program's path in the words of a command."""

_UNRESOLVED: Final = 125
_NOT_RUN: Final = (126, 127)
"""What shells return for a command that cannot be run or is not there."""

_ALL_MEMORY: Final = 1 << 20
"""MiB: what the user's command takes is the user's business."""


class BisectError(NestorError):
    """A search that cannot begin or go on; the text says why."""


class Verdict(enum.Enum):
    """What a command says of a program."""

    GOOD = "good"
    BAD = "bad"
    UNRESOLVED = "unresolved"
    """The command says that it cannot tell."""


@dataclass(frozen=True)
class Check:
    """A command that is run on programs."""

    words: tuple[str, ...]
    """``{}`` in them stands for the program's path."""
    seconds: float = 60.0
    """A program with which the command takes longer is bad."""

    def __post_init__(self) -> None:
        """Refuse a command that does not look at the program.

        :raises BisectError: if ``{}`` is in none of the words.
        """
        if not any(PLACE in word for word in self.words):
            raise BisectError(
                f"The command does not say where the program goes: write {PLACE} in its place, as"
                f" in '-- {PLACE} --version'."
            )

    def verdict(self, program: Path) -> Verdict:
        """Run the command on ``program``, never through a shell, with the user's own environment.

        Exit status 0 is good, 125 unresolved, and any other is bad, as are a signal and a command
        that takes too long.

        :raises BisectError: if the command cannot be run.
        """
        words = [word.replace(PLACE, str(program)) for word in self.words]
        done = run(words, Limits(self.seconds, _ALL_MEMORY), reduced=False)
        if done.ending is Ending.NOT_STARTED or done.returncode in _NOT_RUN:
            raise BisectError(f"The command cannot be run: {done.reason}.")
        if done.returncode == _UNRESOLVED:
            return Verdict.UNRESOLVED
        return Verdict.GOOD if done.ok else Verdict.BAD

    @property
    def digest(self) -> str:
        """A SHA-256 of the command."""
        return hashlib.sha256(json.dumps([self.words, self.seconds]).encode()).hexdigest()
