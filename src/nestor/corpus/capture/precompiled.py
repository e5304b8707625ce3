"""Precompiled headers: the headers to include in their place.

A precompiled header holds the options of the build, its level of optimisation among them, and
clang refuses it at the level of a corpus. So the repeated compilation reads the headers themselves.
Imported by the compiler wrapper: keep it quick.
"""

import itertools
import os
from collections.abc import Sequence
from pathlib import Path

from nestor.corpus.capture.journal import Journal

_SUFFIXES = (".pch", ".gch")
HEADER_LANGUAGES = ("c-header", "c++-header")


class PrecompiledError(Exception):
    """The headers of a precompiled header are not recorded; the text says what to do."""


def headers_of(arguments: Sequence[str], header: str, journal: Journal) -> list[str]:
    """Return the headers, as absolute paths, that a cc1 line with ``-emit-pch`` precompiles.

    :param arguments: the cc1 line without its input.
    :param header: the input.
    :raises PrecompiledError: if it builds on a precompiled header of which nothing is recorded.
    """
    words = without_precompiled(arguments, journal)
    return [*_included(words), absolute(header)]


def without_precompiled(arguments: Sequence[str], journal: Journal) -> list[str]:
    """Return a cc1 line with ``-include`` of the headers in place of each ``-include-pch``.

    A header that the line includes anyway, as CMake's lines do, is not included twice.

    :raises PrecompiledError: if the headers can be found neither in the journal nor by the name.
    """
    words = list(arguments)
    while "-include-pch" in words[:-1]:
        index = words.index("-include-pch")
        rest = words[:index] + words[index + 2 :]
        there = _included(rest)
        headers = [h for h in _headers(words[index + 1], journal) if h not in there]
        words[index : index + 2] = [word for header in headers for word in ("-include", header)]
    return words


def absolute(path: str) -> str:
    """Return the absolute form of a path, without looking at symbolic links."""
    return os.path.normpath(Path.cwd() / path)


def _included(words: Sequence[str]) -> list[str]:
    return [absolute(value) for word, value in itertools.pairwise(words) if word == "-include"]


def _headers(file: str, journal: Journal) -> Sequence[str]:
    path = absolute(file)
    recorded = journal.precompiled_headers(path)
    if recorded is not None:
        return recorded
    header = Path(path).with_suffix("")
    if path.endswith(_SUFFIXES) and header.is_file():
        return [str(header)]
    raise PrecompiledError(
        f"the precompiled header {file} was built before the capture, and which header it was made "
        "of is not recorded; delete it and build again"
    )
