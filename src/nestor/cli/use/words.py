"""The words of ``nestor flags`` and ``nestor clang`` that are ours."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from nestor.cli.wrong_words import WrongWordsError

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
    offered: tuple[str, ...] = ()
    """Files of the above that ``NESTOR_PROGRAM`` named: only for policies that read a summary."""

    def without_offered(self) -> "Words":
        """Return these without what was offered."""
        kept = tuple(each for each in self.overrides if each not in self.offered)
        summary = None if self.summary in self.offered else self.summary
        return replace(self, overrides=kept, summary=summary)


def split(name: str, words: Sequence[str]) -> tuple[Words, list[str] | None]:
    """Split ``POLICY… [OPTION [VALUE]]… [-- REST]``; the second part is None without a ``--``.

    :param name: of the command, for errors.
    :raises WrongWordsError: if it is not that.
    """
    own, rest = words, None
    if "--" in words:
        index = words.index("--")
        own, rest = words[:index], list(words[index + 1 :])
    policies: list[str] = []
    overrides: list[str] = []
    values: dict[str, str] = {}
    switches: set[str] = set()
    remaining = iter(own)
    for word in remaining:
        option, equals, value = word.partition("=")
        if word in _SWITCHES:
            switches.add(word)
        elif option in _VALUES:
            value = value if equals else next(remaining, "")
            if not value:
                raise WrongWordsError(f"{option} needs a value.")
            if option in values:
                raise WrongWordsError(f"{option} is given twice.")
            if option == _REPEATED:
                overrides.append(value)
            else:
                values[option] = value
        elif word.startswith("-"):
            raise WrongWordsError(f"'{word}' is no option of 'nestor {name}'.")
        elif not word:
            raise WrongWordsError("The name of a policy is empty.")
        else:
            policies.append(word)
    if not policies:
        raise WrongWordsError("No policy is named, such as 'shipped'.")
    found = Words(
        tuple(policies),
        tuple(overrides),
        lto="--lto" in switches,
        best="--best" in switches,
        offered=(),
        **{option.removeprefix("--"): value for option, value in values.items()},
    )
    return found, rest


def split_around(name: str, words: Sequence[str]) -> tuple[Words, list[str]]:
    """Split the words of a command that runs the compiler ``name``, whose own follow ``--``.

    :raises WrongWordsError: if they do not, or an option is for whole builds.
    """
    if "--" not in words:
        raise WrongWordsError(
            f"What {name} gets follows '--': nestor {name} shipped -- -Oz -c x.c."
        )
    own, rest = split(name, words)
    if own.lto or own.install is not None:
        raise WrongWordsError(f"{'--lto' if own.lto else '--install'} is for 'nestor flags'.")
    return own, rest or []
