"""Overrides of register allocation: decisions by function, as a reviewable text file.

The format is described in docs/reference/formats.md; the plugin reads the same file
(``native/plugin/regalloc/records/AllocationOverrides.cpp``). Questions are numbered within their
function, and which one a number is follows from the answers before it: the lines of a function hold
together or not at all.
"""

import math
import re
from collections.abc import Mapping
from typing import Final, Literal, NamedTuple, get_args

from nestor.problem.override_text import OverrideText

Kind = Literal["module", "function", "evict", "priority"]
KINDS: Final[tuple[Kind, ...]] = get_args(Kind)

STOCK: Final = "stock"
"""The answer of a module or a function in which the stock heuristics decide."""

HEADER: Final = "nestor-allocation-overrides 1"

_CANDIDATES: Final = 33
_LARGEST_ANSWER: Final = 64.0
_LARGEST_QUESTION: Final = 2**32 - 1
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


TEXT: Final = OverrideText(
    header=HEADER,
    expected="'module|function <16 hexadecimal digits> stock', 'evict <16 hexadecimal digits of the"
    " function> <question> <candidate>' or 'priority <16 hexadecimal digits of the function>"
    " <question> <number>'",
    read=_entry,
    answer=lambda key, answer: str(answer),
    any_answer=lambda words: "0" if words.startswith(("evict", "priority")) else STOCK,
)
to_text = TEXT.to_text
parse = TEXT.parse
parse_comments = TEXT.parse_comments
parse_key = TEXT.parse_key
