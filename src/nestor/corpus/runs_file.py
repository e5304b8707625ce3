"""Runs of one's own programs, from a TOML file like the recipes'.

::

    [programs]                          # smoke tests: a short run that does some real work
    prog = ["-q", "in.txt"]
    "tools/other" = ["--check", "<in.txt"]   # in.txt is its standard input
    plain = ["<"]                       # no arguments at all
    gone = []                           # no smoke test any more

    [workloads.prog]                    # longer runs; an empty table: no workload any more
    profile = [["-q", "a.txt"], ["-v", "b.txt"]]  # for profiles and searches; they count together
    measure = ["-q", "c.txt"]           # another one, which tells what was gained

    [inputs]                            # what the runs find in their folder, and where it lies
    "in.txt" = "tests/data.txt"         # relative to this file

Reading it runs nothing. The runs execute programs of the corpus, so only ``nestor evaluate
--smoke`` and what takes a workload do that.
"""

import hashlib
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import Final

from nestor.corpus import store
from nestor.corpus.fetch.tables import table_of
from nestor.corpus.layout import LIMIT
from nestor.corpus.model import Arguments, Corpus, CorpusError, Program, Workload, runs_of
from nestor.corpus.smoke import check_standard_input
from nestor.errors import NestorError
from nestor.files import read_regular, write_atomically

_TABLES: Final = ("programs", "workloads", "inputs")


class RunsFileError(NestorError):
    """A file of runs that cannot be used; the text names it."""


@dataclass(frozen=True)
class RunsFile:
    """What a file of runs holds, by the names of programs or the last parts of them."""

    path: Path
    programs: Mapping[str, Arguments]
    """Arguments of a short run; none takes the program's away."""
    workloads: Mapping[str, Workload | None]
    """None takes the program's away."""
    inputs: Mapping[str, bytes]
    """Names and contents of the files that the runs read."""


def read_runs_file(path: Path) -> RunsFile:
    """Read a file of runs, and the files that it names.

    :raises NestorError: if one of them cannot be read or used.
    """
    try:
        tables = tomllib.loads(read_regular(path, "runs").decode())
        others = sorted(tables.keys() - set(_TABLES))
        if others:
            there = "[programs], [workloads.PROGRAM] and [inputs]"
            raise ValueError(f"there is no table [{others[0]}]; write {there}")
        own = {name: table_of(tables.get(name, {}), name) for name in _TABLES}
        programs = {name: _words(name, words) for name, words in own["programs"].items()}
        workloads = {name: _workload(name, table) for name, table in own["workloads"].items()}
        inputs = {name: _place(name, place) for name, place in own["inputs"].items()}
        longer = [(name, w) for name, kept in workloads.items() if kept for w in kept.each]
        for name, words in (*programs.items(), *longer):
            check_standard_input(name, words, inputs)
    except (ValueError, TypeError) as error:
        raise RunsFileError(f"{path} cannot be used as runs of programs: {error}.") from error
    contents = {
        name: read_regular(path.parent / place, "an input of a run", limit=LIMIT)
        for name, place in inputs.items()
    }
    return RunsFile(path, programs, workloads, contents)


def add_runs(corpus: Corpus, runs: RunsFile) -> Corpus:
    """Give programs of ``corpus`` runs, store what they read, and return the new corpus.

    :raises NestorError: if a name is that of no program or of several.
    """
    smoke = {_named(corpus, name, runs.path).name: w for name, w in runs.programs.items()}
    longer = {_named(corpus, name, runs.path).name: w for name, w in runs.workloads.items()}
    digests = {name: hashlib.sha256(content).hexdigest() for name, content in runs.inputs.items()}
    for name, content in runs.inputs.items():
        write_atomically(corpus.input(digests[name]), content)
    owners = {p.project for p in corpus.programs if p.name in {*smoke, *longer}}
    changed = replace(
        corpus,
        programs=tuple(
            replace(
                p,
                smoke=smoke.get(p.name, p.smoke),
                workload=longer.get(p.name, p.workload),
            )
            for p in corpus.programs
        ),
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


def _workload(name: str, table: object) -> Workload | None:
    if not isinstance(table, dict) or table.keys() - {"measure", "profile"}:
        raise TypeError(f"the workload of {name} must be a table of 'profile' and 'measure'")
    if not table:
        return None
    profile = runs_of(table.get("profile", []))
    if not profile or not table.get("measure"):
        raise ValueError(
            f"the workload of {name} needs runs 'profile', and another one as 'measure'"
        )
    try:
        return Workload(_words(f"'measure' of {name}", table["measure"]), profile)
    except ValueError as error:
        raise ValueError(f"the workload of {name} cannot be used: {error}") from None


def _words(name: str, words: object) -> Arguments:
    if not isinstance(words, list) or not all(isinstance(w, str) and "\0" not in w for w in words):
        raise TypeError(f"{name} must be a list of texts, the arguments of the program")
    return tuple(words)


def _place(name: str, place: object) -> str:
    if not isinstance(place, str) or not place:
        raise TypeError(f"the input {name} must be the path of a file")
    if PurePosixPath(name).name != name or not name.isprintable():
        raise ValueError(f"the input {name!r} must be the name of a file, without folders")
    return place
