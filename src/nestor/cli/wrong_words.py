"""Commands that read their words themselves: what is wrong with them, and how that is said."""

from __future__ import annotations

import sys

from nestor.cli.remarks import remark

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

USAGE_ERROR = 2


class WrongWordsError(ValueError):
    """What is wrong with a command line, in a sentence."""


def answer(name: str, text: str, words: Sequence[str], error: WrongWordsError) -> int:
    """Print the help ``text`` of the command ``name`` if it is wanted, and else what is wrong.

    :return: the exit status.
    """
    if any(word in ("-h", "--help") for word in words):
        sys.stdout.write(text)
        return 0
    remark(f"{error} 'nestor {name} --help' explains all.")
    return USAGE_ERROR
