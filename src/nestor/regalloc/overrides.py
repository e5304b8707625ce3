"""Overrides of register allocation: decisions by function, as a reviewable text file.

The format is described in docs/reference/formats.md; the plugin reads the same file
(``native/plugin/regalloc/records/AllocationOverrides.cpp``). Questions are numbered within their
function, and which one a number is follows from the answers before it: the lines of a function hold
together or not at all.
"""

import math
import re
from collections.abc import Iterator, Mapping
from typing import Final, Literal, NamedTuple, get_args

from nestor.problem.overrides import MOST_BYTES, OverridesError

Kind = Literal["module", "function", "evict", "priority"]
KINDS: Final[tuple[Kind, ...]] = get_args(Kind)

STOCK: Final = "stock"
"""The answer of a module or a function in which the stock heuristics decide."""

HEADER: Final = "nestor-allocation-overrides 1"

_CANDIDATES: Final = 33
_LARGEST_ANSWER: Final = 64.0
_LARGEST_QUESTION: Final = 2**32 - 1
_BLANKS: Final = " \t\n\v\f\r"
_LINE: Final = re.compile(
    r"(?:(?P<kind>module|function) +(?P<whole>[\da-fA-F]{16}) +stock"
    r"|evict +(?P<evicts>[\da-fA-F]{16}) +(?P<eviction>\d+) +(?P<candidate>\d+)"
    r"|priority +(?P<orders>[\da-fA-F]{16}) +(?P<order>\d+)"
    r" +(?P<answer>[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?))?",
    re.ASCII,
)
"""A line as the plugin reads it, without its comment and the blanks around it."""

Answer = int | float | str
"""The candidate to evict, a priority policy's answer, or :data:`STOCK`."""


class Key(NamedTuple):
    """What an override is about.

    A module by the hash of its source file's name, a function by its id, or one question of a
    function.
    """

    kind: Kind
    number: int
    question: int = -1
    """-1 for a module or function."""

    def __str__(self) -> str:
        own = f" {self.question}" if self.question >= 0 else ""
        return f"{self.kind} {self.number:016x}{own}"


Overrides = Mapping[Key, Answer]


def to_text(
    overrides: Overrides, comments: Mapping[Key, str] | None = None, title: str = ""
) -> str:
    """Return the file's text: ``title`` as a comment, then a line per override, sorted."""
    lines = [HEADER, *(f"# {line}" for line in title.splitlines())]
    for key in sorted(overrides):
        comment = (comments or {}).get(key, "").replace("\n", " ")
        lines.append(f"{key} {overrides[key]}" + (f"  # {comment}" if comment else ""))
    return "\n".join(lines) + "\n"


def parse(text: str) -> dict[Key, Answer]:
    """Read overrides.

    :raises OverridesError: with the line's number, as the plugin would.
    """
    if len(text.encode(errors="replace")) > MOST_BYTES:
        raise OverridesError(
            f"These are more than the {MOST_BYTES >> 20} MiB that a compiler reads."
        )
    found: dict[Key, Answer] = {}
    for number, key, answer, _ in _entries(text):
        if key in found:
            raise OverridesError(f"Line {number} of the overrides: {key} is given twice.")
        found[key] = answer
    return found


def parse_comments(text: str) -> dict[Key, str]:
    """Return what stands behind the hash sign in the lines of ``text``, which :func:`parse` reads.

    Searches write there what a line is about, in the names of the source.
    """
    return {key: comment for _, key, _, comment in _entries(text) if comment}


def parse_key(words: str) -> Key:
    """Return the key of which ``str`` gives ``words``.

    :raises OverridesError: if there is none.
    """
    answer = "0" if words.startswith(("evict", "priority")) else STOCK
    keys = list(parse(f"{HEADER}\n{words} {answer}"))
    if len(keys) != 1:
        raise OverridesError(f"'{words}' is no key of an override.")
    return keys[0]


def _entries(text: str) -> Iterator[tuple[int, Key, Answer, str]]:
    """Yield number, key, answer and comment of every line that has a key."""
    seen_header = False
    for number, line in enumerate(text.split("\n"), 1):
        words, _, comment = line.partition("#")
        content = " ".join(word for word in words.strip(_BLANKS).split(" ") if word)
        if not content:
            continue
        if not seen_header:
            if content != HEADER:
                break
            seen_header = True
            continue
        entry = _entry(content)
        if entry is None:
            raise OverridesError(
                f"Line {number} of the overrides is not 'module|function <16 hexadecimal digits>"
                " stock', 'evict <16 hexadecimal digits of the function> <question> <candidate>' or"
                " 'priority <16 hexadecimal digits of the function> <question> <number>'."
            )
        yield number, *entry, comment.strip()
    if not seen_header:
        raise OverridesError(f"These are no overrides: the first line is not '{HEADER}'.")


def _entry(content: str) -> tuple[Key, Answer] | None:
    """Return the key and the answer of a line; None if it is malformed."""
    found = _LINE.fullmatch(content)
    if found is None:
        return None
    words = found.groupdict()
    if words["whole"] is not None:
        kind: Kind = "module" if words["kind"] == "module" else "function"
        return Key(kind, int(words["whole"], 16)), STOCK
    if words["evicts"] is not None:
        question, candidate = int(words["eviction"]), int(words["candidate"])
        if question > _LARGEST_QUESTION or candidate >= _CANDIDATES:
            return None
        return Key("evict", int(words["evicts"], 16), question), candidate
    question, answer = int(words["order"]), float(words["answer"])
    if question > _LARGEST_QUESTION or not math.fabs(answer) <= _LARGEST_ANSWER:
        return None
    return Key("priority", int(words["orders"], 16), question), answer
