"""Which releases of LLVM Nestor works with, and what each of them lacks."""

from dataclasses import dataclass
from typing import Final, Literal

MAIN_RELEASE: Final = 22
"""The release that the plugin is written against; a user who names none gets it if it is there."""
TESTED: Final = (19, 22)
"""The releases with which the tests are run."""
FIRST, LAST = 19, 23
"""The oldest and the newest release whose headers the plugin is written for."""

Support = Literal["tested", "expected", "refused"]
"""``expected``: never built by the developers; the identity gate decides at first use."""


def support(major: int) -> Support:
    """Return how well the release ``major`` is supported."""
    if major in TESTED:
        return "tested"
    return "expected" if FIRST <= major <= LAST else "refused"


def by_preference(major: int) -> tuple[bool, bool, int]:
    """Return a key that sorts releases, the one to use first: tested ones, then newer ones."""
    return (major not in TESTED, not FIRST <= major <= LAST, -major)


@dataclass(frozen=True)
class Ability:
    """Something that the plugin or the compiler can do since a release."""

    name: str
    since: int
    """The first release that has it."""


REGISTER_ALLOCATION: Final = Ability("policies about register allocation", 22)
"""Before, LLVM kept the allocator's advisors to itself."""
FUNCTION_LOG: Final = Ability("the function log", 22)
"""Before, a plugin was not called ahead of code generation."""
VOCABULARIES: Final = Ability("vocabularies", 22)
"""Before, the entities of IR2Vec had no public numbers."""
CHANNEL_DEFAULT: Final = Ability("the default over the channel", 21)
"""Before, LLVM wrote its default answer over the first feature behind the costs."""

ABILITIES: Final = (REGISTER_ALLOCATION, FUNCTION_LOG, VOCABULARIES, CHANNEL_DEFAULT)


def missing(major: int) -> tuple[str, ...]:
    """Return the names of the abilities that the release ``major`` lacks."""
    return tuple(ability.name for ability in ABILITIES if major < ability.since)
