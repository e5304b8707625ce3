"""Overrides of inlining: answers by call site, callee or module, as a reviewable text file.

The format is described in docs/reference/formats.md; the plugin reads the same file
(``native/plugin/inlining/Overrides.cpp``).
"""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final, Literal, NamedTuple, get_args

from nestor.problem.overrides import MOST_BYTES, OverridesError, read_overrides

Kind = Literal["site", "site-only", "callee", "module"]
KINDS: Final[tuple[Kind, ...]] = get_args(Kind)
SITE_KINDS: Final[tuple[Kind, ...]] = ("site", "site-only")

_KIND_OF: Final[Mapping[str, Kind]] = {kind: kind for kind in KINDS}
_HEADER: Final = "nestor-overrides 1"
_BLANKS: Final = " \t\n\v\f\r"
_LINE: Final = re.compile(
    r"[ \t\v\f\r]*"
    r"(?:(site|site-only|callee) +([\da-fA-F]{16}) +(inline|keep)|module +([\da-fA-F]{16}) +stock)?"
    r"[ \t\v\f\r]*(?:#(.*))?",
    re.ASCII | re.DOTALL,
)
"""A line as the plugin reads it: words between blanks, and a comment."""


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
    if len(text.encode(errors="replace")) > MOST_BYTES:
        raise OverridesError(
            f"These are more than the {MOST_BYTES >> 20} MiB that a compiler reads."
        )
    found: dict[Key, bool] = {}
    for number, key, answer, _ in _entries(text):
        if key in found:
            raise OverridesError(f"Line {number} of the overrides: {key} is given twice.")
        found[key] = answer
    return found


def parse_comments(text: str) -> dict[Key, str]:
    """Return what stands behind the hash sign in the lines of ``text``, which :func:`parse` reads.

    Searches write there what a line is about, in the names of the source.
    """
    comments = ((key, (comment or "").strip()) for _, key, _, comment in _entries(text))
    return {key: comment for key, comment in comments if comment}


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


def _entries(text: str) -> Iterator[tuple[int, Key, bool, str | None]]:
    """Yield number, key, answer and comment of every line that has a key."""
    lines = enumerate(text.split("\n"), 1)
    if next((entry for _, line in lines if (entry := _entry(line))), []) != _HEADER.split():
        raise OverridesError(f"These are no overrides: the first line is not '{_HEADER}'.")
    for number, line in lines:
        found = _LINE.fullmatch(line)
        if found is None:
            raise OverridesError(
                f"Line {number} of the overrides is not 'site|site-only|callee <16 hexadecimal"
                " digits> inline|keep' or 'module <16 hexadecimal digits> stock'."
            )
        kind, digits, answer, module, comment = found.groups()
        if kind:
            yield number, Key(_KIND_OF[kind], int(digits, 16)), answer == "inline", comment
        elif module:
            yield number, Key("module", int(module, 16)), False, comment


def _entry(line: str) -> list[str]:
    """Return the words of a line without its comment."""
    return [word for word in line.split("#")[0].strip(_BLANKS).split(" ") if word]
