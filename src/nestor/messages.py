"""What failed, in one line of what a compiler or a build has printed."""

import re
from typing import Final

_ERROR: Final = re.compile(
    r"(?i)\berror:|\bfatal error|CMake Error|undefined reference|\*\*\* |: not found$"
)
_LONGEST: Final = 300


def compiler_error(text: str) -> str:
    """Return the first error in what a compiler printed; without one its first line, or ""."""
    return _line(text, 0)


def build_error(text: str) -> str:
    """Return the first error in what a build printed; without one its last line, or ""."""
    return _line(text, -1)


def _line(text: str, otherwise: int) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    errors = [line for line in lines if _ERROR.search(line)]
    if errors:
        return errors[0][:_LONGEST]
    return lines[otherwise][:_LONGEST] if lines else ""
