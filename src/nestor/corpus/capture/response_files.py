"""Response files: ``@FILE`` among the words of a command stands for the words in the file.

Imported by the compiler wrapper: keep it quick.
"""

import shlex
from collections.abc import Sequence
from pathlib import Path

_DEPTH = 20


def expanded(arguments: Sequence[str], depth: int = _DEPTH) -> list[str]:
    """Return ``arguments`` with the words of response files, which may name others in turn.

    A file that cannot be read, or not as words, stays as it is: the compiler has its own opinion.
    """
    words: list[str] = []
    for word in arguments:
        if not word.startswith("@") or depth == 0 or is_stream(word):
            words.append(word)
            continue
        try:
            text = Path(word[1:]).read_text(encoding="utf-8", errors="surrogateescape")
            words += expanded(shlex.split(text), depth - 1)
        except (OSError, ValueError):
            words.append(word)
    return words


def is_stream(word: str) -> bool:
    """Tell whether a word names a response file that can be read only once, such as a pipe."""
    path = Path(word[1:])
    return word.startswith("@") and path.exists() and not path.is_file()
