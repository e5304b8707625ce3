"""The words of ``nestor flags`` and ``nestor clang`` that are ours."""

from dataclasses import dataclass
from typing import Final

_VALUES: Final = ("--overrides", "--summary", "--level", "--problem", "--llvm", "--install")
_REPEATED: Final = "--overrides"
_SWITCHES: Final = ("--lto", "--best")


@dataclass(frozen=True)
class Words:
    """What a user wants of policies in a build."""

    policies: tuple[str, ...]
    """Files or built-ins; at least one."""
    overrides: tuple[str, ...] = ()
    """Files."""
    summary: str | None = None
    level: str | None = None
    """The optimisation level of the build, which the policies have to be made for."""
    problem: str | None = None
    """The problem that is meant where several have a policy of one name."""
    llvm: str | None = None
    install: str | None = None
    """The folder that gets everything that a build needs."""
    lto: bool = False
    """The options are for a link."""
    best: bool = False
    """Each function gets the best of what the policies and the default come to."""


def split(words: list[str]) -> tuple[Words | None, list[str] | None]:
    """Split ``POLICY… [OPTION [VALUE]]… [-- REST]``; the first part is None if it is not that."""
    own, rest = words, None
    if "--" in words:
        index = words.index("--")
        own, rest = words[:index], words[index + 1 :]
    policies: list[str] = []
    overrides: list[str] = []
    values: dict[str, str] = {}
    switches: set[str] = set()
    remaining = iter(own)
    for word in remaining:
        if word in _SWITCHES:
            switches.add(word)
        elif word in _VALUES:
            value = next(remaining, None)
            if value is None or word in values:
                return None, rest
            if word == _REPEATED:
                overrides.append(value)
            else:
                values[word] = value
        elif word.startswith("-"):
            return None, rest
        else:
            policies.append(word)
    if not policies:
        return None, rest
    found = Words(
        tuple(policies),
        tuple(overrides),
        lto="--lto" in switches,
        best="--best" in switches,
        **{name.removeprefix("--"): value for name, value in values.items()},
    )
    return found, rest
