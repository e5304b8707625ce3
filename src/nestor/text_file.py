"""Text files of one entry per line, as the plugin reads them (``native/plugin/core/TextFile``).

Overrides and program summaries share a syntax: a header line of a name and a version, then entries
of words between blanks; a hash sign begins a comment. A tab between words is part of a word.
"""

from collections.abc import Iterator
from typing import Final, NamedTuple

_BLANKS: Final = " \t\n\v\f\r"
"""What is no part of a line's first and last word."""


class Entry(NamedTuple):
    """A line that says something."""

    number: int
    """From 1 on."""
    words: str
    """A blank between each."""
    comment: str
    """What stands behind the hash sign."""


def entries(text: str) -> Iterator[Entry]:
    """Yield the lines of ``text`` that are not empty and no comment; the header is the first."""
    for number, line in enumerate(text.split("\n"), 1):
        content, _, comment = line.partition("#")
        words = " ".join(word for word in content.strip(_BLANKS).split(" ") if word)
        if words:
            yield Entry(number, words, comment.strip())


def header_of(text: str) -> str:
    """Return the words of the first line that is not empty and no comment; empty if all are."""
    return next((entry.words for entry in entries(text)), "")
