"""Overrides of inlining: answers by call site, callee or module, as a reviewable text file.

The format is described in docs/reference/formats.md; the plugin reads the same file
(``native/plugin/inlining/Overrides.cpp``).
"""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final, Literal, NamedTuple, get_args

from nestor.problem.override_text import OverrideText
from nestor.problem.overrides import OverridesError, read_overrides

Kind = Literal["site", "site-only", "callee", "module"]
KINDS: Final[tuple[Kind, ...]] = get_args(Kind)
SITE_KINDS: Final[tuple[Kind, ...]] = ("site", "site-only")
EVERY_MODULE: Final = -1
"""In place of a module's id, which is never negative."""

_KIND_OF: Final[Mapping[str, Kind]] = {kind: kind for kind in KINDS}
_WORDS_OF: Final = {True: ("inline", "no-summary"), False: ("keep", "stock")}
"""An answer about a call, and one about a module."""
_HEADER: Final = "nestor-overrides 1"
_LINE: Final = re.compile(
    r"site(-only)? [\da-fA-F]{16}( in [\da-fA-F]{16})? (inline|keep)"
    r"|callee [\da-fA-F]{16} (inline|keep)|module [\da-fA-F]{16} (stock|no-summary)",
    re.ASCII,
)
"""The words of a line as the plugin reads it."""


class Key(NamedTuple):
    """What an override is about.

    A site by its key, with or without the copies of its call that other lines do not name; all
    sites of one callee by the function's id; or a module by the hash of its source file's name.
    """

    kind: Kind
    number: int
    module: int = EVERY_MODULE
    """The only module in which a site's answer counts, above one for all modules: functions that
    several modules hold, as inline ones in C++, have the same sites in each."""

    def __str__(self) -> str:
        where = "" if self.module == EVERY_MODULE else f" in {self.module:016x}"
        return f"{self.kind} {self.number:016x}{where}"


Overrides = Mapping[Key, bool]
"""True is *inline*. A module's is False for *stock*, where no policy is asked, and True for
*no-summary*, where one decides as if it did not know the program."""


def _entry(content: str) -> tuple[Key, bool] | None:
    """Return the key and the answer of a line; None if it is malformed."""
    if _LINE.fullmatch(content) is None:
        return None
    words = content.split()
    module = int(words[3], 16) if len(words) == 5 else EVERY_MODULE
    return Key(_KIND_OF[words[0]], int(words[1], 16), module), words[-1] in _WORDS_OF[True]


def _answer(key: Key, answer: bool) -> str:
    return _WORDS_OF[answer][key.kind == "module"]


TEXT: Final = OverrideText(
    header=_HEADER,
    expected="'site|site-only|callee <16 hexadecimal digits> inline|keep', 'site|site-only <16"
    " hexadecimal digits> in <16 hexadecimal digits> inline|keep' or 'module <16 hexadecimal"
    " digits> stock|no-summary'",
    read=_entry,
    answer=_answer,
    any_answer=lambda words: "stock" if words.startswith("module") else "keep",
)
to_text = TEXT.to_text
parse = TEXT.parse
parse_comments = TEXT.parse_comments
parse_key = TEXT.parse_key


def load(path: Path) -> dict[Key, bool]:
    """Read the file ``path``. See :func:`parse`.

    :raises ReadError: if it is no regular file, or too large.
    """
    text = read_overrides(path)
    try:
        return parse(text)
    except OverridesError as error:
        raise OverridesError(f"{path}: {error}") from None
