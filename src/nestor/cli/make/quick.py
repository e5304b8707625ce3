"""``nestor make`` when there is a summary and nothing has to be looked up.

A build after an edit compiles one file, so what comes before it should take no time.
"""

from __future__ import annotations

import os

from nestor.cli.become import become
from nestor.cli.make import words as own_words
from nestor.cli.make.place import compilers_folder
from nestor.cli.make.running import environment
from nestor.cli.use.remembered import recall
from nestor.cli.wrong_words import WrongWordsError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

MOST_RECORDS = 5000
"""Records of compiles after which they are put together again."""


def run(words: Sequence[str]) -> None:
    """Become the build, under the summary that is there; return if more must be done."""
    try:
        own = own_words.split(words)
    except WrongWordsError:
        return
    if own.renew or own.json or os.path.exists(own.unfinished):  # noqa: PTH110
        return
    if own.all_again and os.path.exists(own.left):  # noqa: PTH110
        return
    scripts = recall(key(own))
    if scripts is None or not _are(scripts, own.folder):
        return
    try:
        # The first build that compiles something is told at which level it does.
        if not os.listdir(f"{own.folder}/objects"):  # noqa: PTH208
            return
        if len(os.listdir(f"{own.folder}/compiles")) > MOST_RECORDS:  # noqa: PTH208
            return
    except OSError:
        return
    try:
        become(own.command, environment(os.environ, own.folder, cached=True))
    except OSError:
        return  # who takes more time says what is wrong


def key(own: own_words.Words) -> list[str]:
    """Return the words under which the compilers of a build are remembered."""
    left = "modules left" if os.path.exists(own.left) else ""  # noqa: PTH110
    return ["make", own.folder, *own.policies, own.llvm or "", left]


def remembered(texts: Mapping[str, str]) -> list[str]:
    """Return the texts of the compilers as they are remembered."""
    return [field for pair in sorted(texts.items()) for field in pair]


def _are(scripts: list[str], folder: str) -> bool:
    """Tell whether the compilers in ``folder`` are those that are remembered."""
    try:
        for name, text in zip(scripts[::2], scripts[1::2], strict=True):
            with open(f"{compilers_folder(folder)}/{name}", "rb") as file:  # noqa: PTH123
                if file.read() != os.fsencode(text):
                    return False
    except (OSError, ValueError):
        return False
    return True
