"""The profile with which a module is compiled: a file beside its bitcode, named by its sha256.

So a recorded command line can name no other file, means the same in every folder, and changes with
what is in the profile. Imported by the compiler wrapper: keep it quick.
"""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

KIND: Final = "-fprofile-instrument-use="
"""Of cc1: ``llvm``, ``csllvm`` (counts for the middle end) or ``clang`` (for the front end)."""
PATH: Final = "-fprofile-instrument-use-path="
SUFFIX: Final = ".profdata"
_HEXADECIMAL: Final = frozenset("0123456789abcdef")


def profile_option(digest: str) -> str:
    """Return the option of a recorded command line that names the profile with this sha256."""
    return f"{PATH}{digest}{SUFFIX}"


def profile_of(options: Iterable[str]) -> str | None:
    """Return the sha256 of the profile that a recorded cc1 line names, None without one."""
    return next((digest for word in options if (digest := _digest(word))), None)


def with_profile_beside(options: Sequence[str], bitcode: Path) -> list[str]:
    """Return a recorded cc1 line that names its profile, if there is one, by the whole path."""
    return [
        f"{PATH}{profile_path(bitcode, digest)}" if (digest := _digest(word)) else word
        for word in options
    ]


def profile_path(bitcode: Path, digest: str) -> Path:
    """Return where the profile of ``bitcode`` lies."""
    return bitcode.with_name(f"{digest}{SUFFIX}")


def without_profile(options: Iterable[str]) -> tuple[str, ...]:
    """Return a cc1 line that compiles without counts."""
    return tuple(word for word in options if not word.startswith((KIND, PATH)))


def _digest(word: str) -> str:
    """Return the sha256 that ``word`` names a profile by, nothing if it is another option."""
    if not (word.startswith(PATH) and word.endswith(SUFFIX)):
        return ""
    digest = word[len(PATH) : -len(SUFFIX)]
    return digest if len(digest) == 64 and _HEXADECIMAL.issuperset(digest) else ""
