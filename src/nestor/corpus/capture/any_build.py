"""Builds that were written for gcc, run with clang: adapt commands, hand over what clang refuses.

A build that nobody here may change hard-codes names of compilers and options of gcc. Configure
tests are left as they are, so that the build adapts to clang where it can. Imported by the compiler
wrapper: keep it quick.
"""

import os
import re
import stat
from collections.abc import Iterator, Sequence
from typing import Final

from nestor.corpus.capture import driver
from nestor.corpus.capture.response_files import expanded

_PREFIX: Final = r"([a-z0-9_]+(-[a-z0-9_]+)+-)?"
_NAMES: Final = {
    "c": re.compile(_PREFIX + r"(gcc|cc|clang)(-[\d.]+)?"),
    "c++": re.compile(_PREFIX + r"(g\+\+|c\+\+|clang\+\+)(-[\d.]+)?"),
}
# Warnings are not errors, as with the compiler that the build was written for; link-time
# optimisation would need a linker plugin, and the modules are recorded without it anyway.
_OURS: Final = (
    "-fno-lto", "-Qunused-arguments", "-Wno-error", "-Wno-error=implicit-function-declaration",
    "-Wno-error=implicit-int", "-Wno-error=int-conversion", "-Wno-error=return-type",
    "-Wno-error=incompatible-function-pointer-types", "-Wno-error=incompatible-pointer-types",
    "-Wno-error=return-mismatch", "-Wno-error=register", "-Wno-c++11-narrowing",
)  # fmt: skip
_REFUSED: Final = re.compile(
    r"error: (?:unknown argument:?|unsupported option|unsupported argument '[^']*' to option)"
    r" '([^']+)'"
)
_INVALID: Final = re.compile(r"error: invalid (?:value|integral value) '([^']+)' in '([^']+)'")
_MOST_TRIES: Final = 5


def compilers_on_path(language: str) -> set[str]:
    """Return the names under which programs of the path are compilers of a language.

    :param language: ``"c"`` or ``"c++"``.
    """
    return {name for name in _programs() if _NAMES[language].fullmatch(name)}


def _programs() -> Iterator[str]:
    for folder in os.get_exec_path():
        try:
            entries = list(os.scandir(folder))
        except OSError:
            continue
        for entry in entries:
            try:
                if entry.stat().st_mode & stat.S_IXUSR:
                    yield entry.name
            except OSError:
                continue


def adapted(arguments: Sequence[str]) -> list[str]:
    """Return a command with our options appended; a configure test stays as it is."""
    if driver.is_probe(arguments):
        return list(arguments)
    end = list(arguments).index("--") if "--" in arguments else len(arguments)
    return [*arguments[:end], *_OURS, *arguments[end:]]


def run_either(clang: str, other: str, arguments: Sequence[str]) -> tuple[int, list[str]]:
    """Run a command with clang, or with the other compiler if clang cannot.

    Options that clang does not have are left out first. What the other compiler has made is an
    object without a module. It never answers a configure test, which asks about clang.

    :return: the exit status, and the words that clang was run with at last.
    """
    words = list(arguments)
    status = driver.run(clang, words)
    if status == 0 or driver.is_probe(words):
        return status, words
    accepted = without_refused(clang, words)
    if accepted != words:
        status = driver.run(clang, accepted)
        if status == 0:
            return status, accepted
    own = [word for word in arguments if word not in _OURS]
    return driver.run(other, own), accepted


def without_refused(clang: str, arguments: Sequence[str]) -> list[str]:
    """Return a command without the options that clang's driver calls unknown or unsupported."""
    words = list(arguments)
    for _ in range(_MOST_TRIES):
        status, messages = driver.run_quietly(clang, ["-###", *words])
        refused = set(_REFUSED.findall(messages))
        refused |= {option + value for value, option in _INVALID.findall(messages)}
        words = expanded(words) if status != 0 and refused.isdisjoint(words) else words
        rest = [word for word in words if word not in refused]
        if status == 0 or len(rest) == len(words):
            return rest
        words = rest
    return words
