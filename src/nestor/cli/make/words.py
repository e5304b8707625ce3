"""The words of ``nestor make`` that are ours."""

import os
from collections.abc import Sequence
from typing import Final

from nestor.cli.make.place import LEFT_MODULES
from nestor.cli.wrong_words import WrongWordsError

USUAL_POLICIES: Final = ("distilled", "shipped-os", "shipped-speed")
"""About inlining at -Oz, at -Os, and at -O2 and -O3."""
USUAL_INSIDE_LTO: Final = ("shipped-lto",)
"""The same in links by LTO: at -Oz."""
_POLICY: Final = "--policy"
_VALUES: Final = (_POLICY, "--summary", "--link", "--jobs", "--again", "--llvm")
_SWITCHES: Final = ("--renew", "--json")
_ALL: Final = 100
LINKS: Final = ("gc", "no-gc", "icf")


class Words:
    """What a user wants of a build."""

    def __init__(
        self,
        words: Sequence[str],
        policies: tuple[str, ...],
        values: dict[str, str],
        switches: set[str],
        command: list[str],
    ):
        self.words = tuple(words)
        """As they were given."""
        self.policies = policies or USUAL_POLICIES
        """Files or built-ins."""
        folder = values.get("--summary") or os.environ.get("NESTOR_PROGRAM") or ".nestor"
        self.folder = os.path.abspath(folder)  # noqa: PTH100  keeps what is no path
        """What is kept beside the build."""
        self.link = values.get("--link", "gc")
        self.jobs = values.get("--jobs")
        self.again = values.get("--again")
        """Per cent of the first build's cost that compiling again may take."""
        self.llvm = values.get("--llvm")
        self.renew = "--renew" in switches
        self.json = "--json" in switches
        self.command = command
        """The build's own."""

    @property
    def summary(self) -> str:
        """The file of the summary."""
        return f"{self.folder}/summary.txt"

    @property
    def left(self) -> str:
        """The overrides that leave modules as they were; not there if none are left."""
        return f"{self.folder}/{LEFT_MODULES}"

    @property
    def lifted(self) -> str:
        """The overrides of modules that are to be under the policy now, until they are."""
        return f"{self.folder}/lifted.txt"

    @property
    def all_again(self) -> bool:
        """Whether every module is to be compiled of which a decision changes."""
        return self.again is not None and int(self.again) >= _ALL

    @property
    def unfinished(self) -> str:
        """The file that is there while objects are a first build's that should not stay so."""
        return f"{self.folder}/unfinished"


def split(words: Sequence[str]) -> Words:
    """Read ``[OPTION [VALUE]]… -- COMMAND…``.

    :raises WrongWordsError: if it is not that.
    """
    if "--" not in words:
        raise WrongWordsError("The build's command follows '--': nestor make -- make -j8.")
    index = list(words).index("--")
    policies: list[str] = []
    values: dict[str, str] = {}
    switches: set[str] = set()
    remaining = iter(words[:index])
    for word in remaining:
        name, equals, value = word.partition("=")
        if word in _SWITCHES:
            switches.add(word)
        elif not word.startswith("-"):
            raise WrongWordsError(
                f"'{word}' stands before '--': a policy is named by --policy {word}, and the"
                " build's command follows '--'."
            )
        elif name not in _VALUES:
            raise WrongWordsError(
                f"'{word}' is no option of 'nestor make', and stands before '--'."
            )
        elif name in values:
            raise WrongWordsError(f"{name} is given twice.")
        else:
            value = value if equals else next(remaining, "")
            if not value:
                raise WrongWordsError(f"{name} needs a value.")
            if name == _POLICY:
                policies.append(value)
            else:
                values[name] = value
    command = list(words[index + 1 :])
    if not command:
        raise WrongWordsError("There is no command after '--': nestor make -- make -j8.")
    link = values.get("--link", "gc")
    if link not in LINKS:
        raise WrongWordsError(f"--link {link} is none of {', '.join(LINKS)}.")
    for name, least in (("--jobs", 1), ("--again", 0)):
        number = values.get(name, "1")
        if not number.isdecimal() or int(number) < least:
            raise WrongWordsError(f"{name} {number} is no whole number from {least} on.")
    return Words(words[:index], tuple(policies), values, switches, command)
