"""Running a program of a corpus: its arguments, and the files that they name."""

import os
import shutil
from collections.abc import Container, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from nestor.corpus.model import Corpus, Program

INPUTS_DATE: Final = 1_500_000_000
"""When the inputs of a run were changed last, in seconds since 1970: an archiver writes it down."""


@dataclass(frozen=True)
class SmokeRun:
    """A run that succeeds: the ``arguments`` after the program, and its standard input if any."""

    arguments: tuple[str, ...]
    stdin: Path | None


def prepare(
    corpus: Corpus, program: Program, folder: Path, words: Sequence[str] | None = None
) -> SmokeRun | None:
    """Put what ``program`` reads into ``folder``; return how to run it there.

    The run must start in ``folder`` and may write there, so use a new folder for each. An
    argument ``<NAME`` is not passed on: that file is the standard input; ``<`` alone, for a run
    without any argument, is nothing. None if the corpus has no run. The program is foreign code:
    running it is the caller's decision.

    :param words: the arguments of another run than the smoke test, such as one of a workload.
    """
    words = program.smoke if words is None else words
    if not words:
        return None
    folder.mkdir(parents=True, exist_ok=True)
    for name, digest in corpus.project(program.project).inputs:
        shutil.copyfile(corpus.input(digest), folder / name)
        os.utime(folder / name, (INPUTS_DATE, INPUTS_DATE))
    named = _redirected(words)
    arguments = tuple(word for word in words if not word.startswith("<"))
    return SmokeRun(arguments, folder / Path(named[0]).name if named and named[0] else None)


def check_standard_input(name: str, words: Sequence[str], inputs: Container[str]) -> None:
    """Refuse a run of the program ``name`` that reads a file which ``inputs`` do not have.

    :raises ValueError: naming both.
    """
    for read in _redirected(words):
        if read and read not in inputs:
            raise ValueError(f"{name} reads {read}, which [inputs] does not have")


def _redirected(words: Sequence[str]) -> list[str]:
    return [word[1:] for word in words if word.startswith("<")]
