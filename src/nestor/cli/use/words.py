"""The words of ``nestor flags`` and ``nestor clang`` that are ours."""

from dataclasses import dataclass
from typing import Final

_VALUES: Final = ("--overrides", "--summary", "--llvm", "--install")


@dataclass(frozen=True)
class Words:
    """What a user wants of a policy in a build."""

    policy: str
    """A file or a built-in."""
    overrides: str | None = None
    summary: str | None = None
    llvm: str | None = None
    install: str | None = None
    """The folder that gets everything that a build needs."""
    lto: bool = False
    """The options are for a link."""


def split(words: list[str]) -> tuple[Words | None, list[str] | None]:
    """Split ``POLICY [OPTION VALUE]… [-- REST]``; the first part is None if it is not that."""
    own, rest = words, None
    if "--" in words:
        index = words.index("--")
        own, rest = words[:index], words[index + 1 :]
    lto = "--lto" in own
    own = [word for word in own if word != "--lto"]
    values: dict[str, str] = {}
    for option in _VALUES:
        if option in own[:-1]:
            index = own.index(option)
            values[option.removeprefix("--")] = own[index + 1]
            own = own[:index] + own[index + 2 :]
    if len(own) != 1 or own[0].startswith("-"):
        return None, rest
    return Words(own[0], lto=lto, **values), rest
