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

_KIND_OF: Final[Mapping[str, Kind]] = {kind: kind for kind in KINDS}
_HEADER: Final = "nestor-overrides 1"
_LINE: Final = re.compile(
    r"(site|site-only|callee) ([\da-fA-F]{16}) (inline|keep)|module ([\da-fA-F]{16}) stock",
    re.ASCII,
)
"""The words of a line as the plugin reads it."""


class Key(NamedTuple):
    """What an override is about.

    A site by its key, with or without the copies of its call that other lines do not name; all
    sites of one callee by the function's id; or a module by the hash of its source file's name, in
    which the policy is not asked.
    """

    kind: Kind
    number: int

    def __str__(self) -> str:
        return f"{self.kind} {self.number:016x}"


Overrides = Mapping[Key, bool]
"""True is *inline*; a module's is False, since it says *stock*."""


def _entry(content: str) -> tuple[Key, bool] | None:
    """Return the key and the answer of a line; None if it is malformed."""
    found = _LINE.fullmatch(content)
    if found is None:
        return None
    kind, digits, answer, module = found.groups()
    if kind:
        return Key(_KIND_OF[kind], int(digits, 16)), answer == "inline"
    return Key("module", int(module, 16)), False


def _answer(key: Key, inline: bool) -> str:
    return "stock" if key.kind == "module" else "inline" if inline else "keep"


TEXT: Final = OverrideText(
    header=_HEADER,
    expected="'site|site-only|callee <16 hexadecimal digits> inline|keep' or 'module <16"
    " hexadecimal digits> stock'",
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
