"""Overrides that match nothing in a program: of functions that were renamed or removed, say.

A file of overrides serves a whole program, so a line that one compile does not need is no mistake.
Only all compiles of the program together tell: a line is unmatched if none of them asked a question
that it is about.
"""

import difflib
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from nestor.compiler.toolchain import Toolchain
from nestor.problem.overrides import Key, OverrideFormat
from nestor.problem.trajectory import Trajectory

_WORD: Final = re.compile(r"\w+")
_COMPARED: Final = 40
"""Descriptions that share most words with a line's comment are compared letter by letter."""
_PROPOSED: Final = 2
"""Keys that are proposed for a line, at most."""
_ALIKE: Final = 0.6
"""Likeness (``difflib``) from which on a description is proposed."""


@dataclass(frozen=True)
class Unmatched:
    """A line that matches nothing."""

    key: Key
    comment: str
    """What the file says of it; empty if nothing."""
    similar: Mapping[Key, str]
    """Keys without a line that are about something of a similar name, and what that is."""


def unmatched(
    form: OverrideFormat, text: str, trajectories: Iterable[Trajectory], toolchain: Toolchain
) -> tuple[Unmatched, ...]:
    """Return the lines of ``text`` that match nothing, in the order of the file.

    :param text: of a file of overrides.
    :param trajectories: of all compiles of the program under these overrides; with the names of
        functions, similar names are looked for.
    :param toolchain: makes names readable.
    :raises OverridesError: if ``text`` holds no overrides.
    """
    overrides = form.parse(text)
    logs = list(trajectories)
    questions = form.question_keys(logs)
    keys = [key for key in overrides if not questions.matched_by(key)]
    comments = form.parse_comments(text)
    free: dict[Key, str] = {}
    if any(key in comments for key in keys):
        described = form.describe(toolchain, logs)
        free = {key: words for key, words in described.items() if key not in overrides}
    names = _Names(list(free.values()))
    return tuple(
        Unmatched(key, comment, {near: free[near] for near in _near(key, comment, free, names)})
        for key, comment in ((key, comments.get(key, "")) for key in keys)
    )


def _near(key: Key, comment: str, free: Mapping[Key, str], names: "_Names") -> list[Key]:
    """Return the keys of the same kind whose description is most like ``comment``."""
    found = names.like(comment)
    near = [k for text in found for k in free if k.kind == key.kind and free[k] == text]
    return near[:_PROPOSED]


class _Names:
    """Descriptions that can be searched for one that is like another."""

    def __init__(self, texts: Sequence[str]):
        """Index the words of ``texts``."""
        self._texts = texts
        self._having: dict[str, list[int]] = defaultdict(list)
        for number, text in enumerate(texts):
            for word in set(_WORD.findall(text)):
                self._having[word].append(number)

    def like(self, text: str) -> list[str]:
        """Return the descriptions that are most like ``text``, the best first."""
        shared: Counter[int] = Counter()
        for word in set(_WORD.findall(text)):
            shared.update(self._having.get(word, ()))
        compared = [self._texts[number] for number, _ in shared.most_common(_COMPARED)]
        return difflib.get_close_matches(text, dict.fromkeys(compared), n=_PROPOSED, cutoff=_ALIKE)
