"""Overrides of inlining: answers by call site, callee or module, as a reviewable text file.

The format is described in docs/reference/formats.md; the plugin reads the same file
(``native/plugin/inlining/Overrides.cpp``).
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal, get_args

from nestor.problem.overrides import OverridesError

Kind = Literal["site", "callee", "module"]
KINDS: Final[tuple[Kind, ...]] = get_args(Kind)

_HEADER: Final = "nestor-overrides 1"
_ANSWERS: Final[Mapping[str, bool]] = {"inline": True, "keep": False}


@dataclass(frozen=True, order=True)
class Key:
    """What an override is about.

    A site by its key, all sites of one callee by the function's id, or a module by the hash of
    its source file's name, in which the policy is not asked.
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
    lines = _contents(text)
    if next(lines, (0, []))[1] != _HEADER.split():
        raise OverridesError(f"These are no overrides: the first line is not '{_HEADER}'.")
    for number, words in lines:
        key, answer = _line(number, words)
        if key in found:
            raise OverridesError(f"Line {number} of the overrides: {key} is given twice.")
        found[key] = answer
    return found


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
    """Read the file ``path``. See :func:`parse`."""
    try:
        return parse(path.read_text(errors="replace"))
    except OSError as error:
        raise OverridesError(f"{path} cannot be read: {error.strerror}.") from None


def _contents(text: str) -> Iterator[tuple[int, list[str]]]:
    for number, line in enumerate(text.splitlines(), 1):
        words = line.split("#", 1)[0].split()
        if words:
            yield number, words


def _line(number: int, words: list[str]) -> tuple[Key, bool]:
    try:
        kind, digits, answer = words
        if kind not in KINDS or len(digits) != 16:
            raise ValueError
        key = Key(kind, int(digits, 16))
        if kind == "module":
            if answer != "stock":
                raise ValueError
            return key, False
        return key, _ANSWERS[answer]
    except (ValueError, KeyError):
        raise OverridesError(
            f"Line {number} of the overrides is not 'site|callee <16 hexadecimal digits>"
            " inline|keep' or 'module <16 hexadecimal digits> stock'."
        ) from None
