"""Overrides of inlining: answers by call site, callee or module, as a reviewable text file.

The format is described in docs/reference/formats.md; the plugin reads the same file
(``native/plugin/inlining/Overrides.cpp``).
"""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final, Literal, NamedTuple, get_args

from nestor.problem.overrides import OverridesError, read_overrides

Kind = Literal["site", "site-only", "callee", "module"]
KINDS: Final[tuple[Kind, ...]] = get_args(Kind)
SITE_KINDS: Final[tuple[Kind, ...]] = ("site", "site-only")

_HEADER: Final = "nestor-overrides 1"
_ANSWERS: Final[Mapping[str, bool]] = {"inline": True, "keep": False}
_KIND_OF: Final[Mapping[str, Kind]] = {kind: kind for kind in KINDS}
_BLANKS: Final = " \t\n\v\f\r"
_ID: Final = re.compile("[0-9a-fA-F]{16}")


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


def to_text(
    overrides: Overrides, comments: Mapping[Key, str] | None = None, title: str = ""
) -> str:
    """Return the file's text: ``title`` as a comment, then a line per override, sorted."""
    lines = [_HEADER, *(f"# {line}" for line in title.splitlines())]
    for key in sorted(overrides):
        answer = "stock" if key.kind == "module" else "inline" if overrides[key] else "keep"
        comment = (comments or {}).get(key, "").replace("\n", " ")
        lines.append(f"{key} {answer}" + (f"  # {comment}" if comment else ""))
    return "\n".join(lines) + "\n"


def parse(text: str) -> dict[Key, bool]:
    """Read overrides.

    :raises OverridesError: with the line's number, as the plugin would.
    """
    found: dict[Key, bool] = {}
    lines = _entries(text)
    if next(lines, (0, [], ""))[1] != _HEADER.split():
        raise OverridesError(f"These are no overrides: the first line is not '{_HEADER}'.")
    for number, words, _ in lines:
        key, answer = _line(number, words)
        if key in found:
            raise OverridesError(f"Line {number} of the overrides: {key} is given twice.")
        found[key] = answer
    return found


def parse_comments(text: str) -> dict[Key, str]:
    """Return what stands behind the hash sign in the lines of ``text``, which :func:`parse` reads.

    Searches write there what a line is about, in the names of the source.
    """
    lines = list(_entries(text))[1:]
    return {_line(number, words)[0]: comment for number, words, comment in lines if comment}


def parse_key(words: str) -> Key:
    """Return the key of which ``str`` gives ``words``.

    :raises OverridesError: if there is none.
    """
    answer = "stock" if words.startswith("module") else "keep"
    keys = list(parse(f"{_HEADER}\n{words} {answer}"))
    if len(keys) != 1:
        raise OverridesError(f"'{words}' is no key of an override.")
    return keys[0]


def load(path: Path) -> dict[Key, bool]:
    """Read the file ``path``. See :func:`parse`.

    :raises ReadError: if it is no regular file, or too large.
    """
    text = read_overrides(path)
    try:
        return parse(text)
    except OverridesError as error:
        raise OverridesError(f"{path}: {error}") from None


def _entries(text: str) -> Iterator[tuple[int, list[str], str]]:
    """Return number, words and comment of every line that is not empty, as the plugin does."""
    for number, line in enumerate(text.split("\n"), 1):
        entry, _, comment = line.partition("#")
        words = [word for word in entry.strip(_BLANKS).split(" ") if word]
        if words:
            yield number, words, comment.strip()


def _line(number: int, words: list[str]) -> tuple[Key, bool]:
    try:
        kind, digits, answer = words
        if _ID.fullmatch(digits):
            key = Key(_KIND_OF[kind], int(digits, 16))
            if kind != "module":
                return key, _ANSWERS[answer]
            if answer == "stock":
                return key, False
    except (ValueError, KeyError):
        pass
    raise OverridesError(
        f"Line {number} of the overrides is not 'site|site-only|callee <16 hexadecimal digits>"
        " inline|keep' or 'module <16 hexadecimal digits> stock'."
    )
