"""Smoke tests of one's own programs, from a TOML file like the recipes'.

::

    [programs]                          # arguments of a short run that does some real work
    prog = ["-q", "in.txt"]
    "tools/other" = ["--check", "<in.txt"]   # in.txt is its standard input
    plain = ["<"]                       # no arguments at all
    gone = []                           # no smoke test any more

    [inputs]                            # what the runs find in their folder, and where it lies
    "in.txt" = "tests/data.txt"         # relative to this file

Reading it runs nothing. The runs execute programs of the corpus, so only ``nestor evaluate
--smoke`` does that.
"""

import hashlib
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import Any

from nestor.corpus import store
from nestor.corpus.files import LIMIT
from nestor.corpus.model import Corpus, CorpusError, Program
from nestor.errors import NestorError
from nestor.files import read_regular, write_atomically


class SmokeFileError(NestorError):
    """A file of smoke tests that cannot be used; the text names it."""


@dataclass(frozen=True)
class SmokeFile:
    """What a file of smoke tests holds."""

    path: Path
    programs: Mapping[str, tuple[str, ...]]
    """Arguments of a short run by the name of the program, or the last parts of it."""
    inputs: Mapping[str, bytes]
    """Names and contents of the files that the runs read."""


def read_smoke_file(path: Path) -> SmokeFile:
    """Read a file of smoke tests, and the files that it names.

    :raises NestorError: if one of them cannot be read or used.
    """
    try:
        tables = tomllib.loads(read_regular(path, "smoke tests").decode())
        others = sorted(tables.keys() - {"programs", "inputs"})
        if others:
            raise ValueError(f"there is no table [{others[0]}]; write [programs] and [inputs]")
        programs = {name: _words(name, words) for name, words in _table(tables, "programs").items()}
        inputs = {name: _place(name, place) for name, place in _table(tables, "inputs").items()}
        for name, words in programs.items():
            absent = [w[1:] for w in words if w[:1] == "<" and w[1:] and w[1:] not in inputs]
            if absent:
                raise ValueError(f"{name} reads {absent[0]}, which [inputs] does not have")
    except (ValueError, TypeError) as error:
        raise SmokeFileError(f"{path} cannot be used as smoke tests: {error}.") from error
    contents = {
        name: read_regular(path.parent / place, "an input of a smoke test", limit=LIMIT)
        for name, place in inputs.items()
    }
    return SmokeFile(path, programs, contents)


def add_smoke_tests(corpus: Corpus, tests: SmokeFile) -> Corpus:
    """Give programs of ``corpus`` smoke tests, store what they read, and return the new corpus.

    :raises NestorError: if a name is that of no program or of several.
    """
    smoke = {_named(corpus, name, tests.path).name: w for name, w in tests.programs.items()}
    digests = {name: hashlib.sha256(content).hexdigest() for name, content in tests.inputs.items()}
    for name, content in tests.inputs.items():
        write_atomically(corpus.input(digests[name]), content)
    owners = {program.project for program in corpus.programs if program.name in smoke}
    changed = replace(
        corpus,
        programs=tuple(replace(p, smoke=smoke.get(p.name, p.smoke)) for p in corpus.programs),
        projects=tuple(
            replace(p, inputs=tuple(sorted({**dict(p.inputs), **digests}.items())))
            if p.name in owners
            else p
            for p in corpus.projects
        ),
    )
    store.save(changed)
    return changed


def _named(corpus: Corpus, name: str, path: Path) -> Program:
    found = [p for p in corpus.programs if p.name == name or p.name.endswith(f"/{name}")]
    if len(found) == 1:
        return found[0]
    there = ", ".join(p.name for p in found or corpus.programs) or "none"
    what = "fits several programs" if found else "is no program of the corpus"
    raise CorpusError(f"{path}: {name} {what}; there are: {there}.")


def _table(tables: Mapping[str, Any], name: str) -> dict[str, Any]:
    table = tables.get(name, {})
    if not isinstance(table, dict):
        raise TypeError(f"{name} must be a table")
    return table


def _words(name: str, words: object) -> tuple[str, ...]:
    if not isinstance(words, list) or not all(isinstance(w, str) and "\0" not in w for w in words):
        raise TypeError(f"{name} must be a list of texts, the arguments of the program")
    return tuple(words)


def _place(name: str, place: object) -> str:
    if not isinstance(place, str) or not place:
        raise TypeError(f"the input {name} must be the path of a file")
    if PurePosixPath(name).name != name or not name.isprintable():
        raise ValueError(f"the input {name!r} must be the name of a file, without folders")
    return place
