"""The optimisation level at which the modules of a corpus were made.

Bitcode before optimisation depends on the level already: at ``-Oz`` every function carries the
attribute ``minsize``, which the back end obeys whatever its command line says. So a corpus has one
level, and a problem wants the one that it decides at. Imported by the compiler wrapper: keep it
quick.
"""

from collections.abc import Iterable
from typing import Final, Literal

Level = Literal["-O1", "-O2", "-O3", "-Os", "-Oz"]

LEVELS: Final[tuple[Level, ...]] = ("-O1", "-O2", "-O3", "-Os", "-Oz")
DEFAULT_LEVEL: Final[Level] = "-Oz"
"""Also of corpora whose description names no level: they are older than the choice."""

_UNASKED: Final = "-O0"
_OTHER_NAMES: Final = {"-O": "-O1", "-Og": "-O1", "-O4": "-O3", "-Ofast": "-O3"}
"""What optimises as a level does (clang's command line reference)."""


def names_of(level: str) -> tuple[str, ...]:
    """Return everything by which the driver's command line asks for ``level``."""
    return (level, *(name for name, own in _OTHER_NAMES.items() if own == level))


def parse_level(text: object) -> Level:
    """Return the level that ``text`` names.

    :raises ValueError: if it names none.
    """
    for level in LEVELS:
        if text == level:
            return level
    raise ValueError(f"'{text}' is no level of optimisation; write one of {', '.join(LEVELS)}")


def level_of(options: Iterable[str]) -> Level | None:
    """Return the level that a cc1 line names last, None if it names none of :data:`LEVELS`."""
    named = [word for word in options if word in LEVELS]
    return parse_level(named[-1]) if named else None


def last_level(words: Iterable[str]) -> str:
    """Return the level that a command line of the driver asks for; it may be none of ours."""
    last = [_UNASKED, *(word for word in words if word.startswith("-O"))][-1]
    return _OTHER_NAMES.get(last, last)
