"""Records of compiles: what made each object of a build, so that it can be made again."""

import hashlib
import os
import re
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import takewhile
from pathlib import Path

from nestor.cli.make.place import (
    BY_LTO,
    COMPILER_VARIABLES,
    END,
    HEADER,
    LINKED,
    POLICY,
    UNDER_POLICY_BY_LTO,
)
from nestor.corpus.capture.response_files import expanded
from nestor.corpus.level import last_level
from nestor.files import write_atomically

_SOURCES = frozenset(
    {".c", ".cc", ".cp", ".cpp", ".cxx", ".c++", ".C", ".CPP", ".i", ".ii", ".m", ".mm", ".s"}
    | {".S", ".sx", ".bc", ".ll"}
)
_WITH_VALUE = frozenset(
    {"-x", "-I", "-D", "-U", "-include", "-isystem", "-iquote", "-idirafter", "-MF", "-MT", "-MQ"}
    | {"-Xclang", "-mllvm", "-arch", "-target"}
)
_CONFIGURATION = re.compile(r"/CMakeFiles/(\d[\d.]*|CMakeScratch|_CMakeLTOTest)|/meson-private/")
"""What build systems compile to find out about the compiler."""
_FEWEST = 5
"""Fields of a record without arguments."""


@dataclass(frozen=True)
class Record:
    """One compile."""

    mode: str
    """How it was compiled or linked: see ``place.py``."""
    folder: Path
    """The working folder."""
    logs: Path | None
    """The folder of the log of its decisions, of a first build."""
    compiler: str
    arguments: tuple[str, ...]
    outputs: tuple[Path, ...] = ()
    """The objects that it makes, absolute; of ``linked`` the program."""
    variables: Mapping[str, str] = field(default_factory=dict)
    """Of its environment, those of :data:`~nestor.cli.make.place.COMPILER_VARIABLES` that are
    set."""

    @property
    def is_cxx(self) -> bool:
        """Whether it is C++, which a first build compiles under the policy without a summary."""
        return self.compiler.endswith("++")

    @property
    def is_linked(self) -> bool:
        """Whether it makes a program or a library, and no object."""
        return _is_linked(self.mode, self.arguments)

    @property
    def level(self) -> str:
        """The optimisation level, as the last of its options names it."""
        return last_level(self.arguments)

    def save(self, folder: Path) -> None:
        """Write the record as the last one of its objects."""
        logs = "" if self.logs is None else str(self.logs)
        variables = (f"{name}={value}" for name, value in self.variables.items())
        start = (HEADER, self.mode, str(self.folder), logs, *variables)
        fields = [*start, self.compiler, *self.arguments, END]
        content = b"".join(os.fsencode(field) + b"\0" for field in fields)
        write_atomically(folder / _name(self), content)

    def under_policy(self) -> "Record":
        """Return the record of the same objects after they were compiled under the policy."""
        return replace(self, mode=POLICY, logs=None)


def collect(place: Path) -> list[Record]:
    """Return the last record of each object and program that exists, and keep those alone.

    :param place: the folder of ``nestor make``.
    """
    found: dict[str, tuple[int, str, Record]] = {}
    paths = [*(place / "objects").glob("*"), *(place / "compiles").glob("*")]
    for path in paths:
        record = None if path.suffix == ".words" else _read(path)
        if record is not None and all(out.is_file() for out in record.outputs):
            name = _name(record)
            stamp = path.stat().st_mtime_ns
            if name not in found or (stamp, path.name) > found[name][:2]:
                found[name] = (stamp, path.name, record)
    records = {name: found[name][2] for name in sorted(found)}
    kept = place / "objects"
    for record in records.values():
        record.save(kept)
    for path in paths:
        # The words of response files are in the records by now.
        if path.parent != kept or path.name not in records:
            path.unlink(missing_ok=True)
    logs = {record.logs for record in records.values()}
    for path in (place / "logs").glob("*"):
        if path not in logs:
            shutil.rmtree(path, ignore_errors=True)
    return list(records.values())


def of_last_build(place: Path) -> list[Record]:
    """Return the records of compiles since the last :func:`collect`."""
    paths = sorted(path for path in (place / "compiles").glob("*") if path.suffix != ".words")
    return [record for record in map(_read, paths) if record is not None]


def of_the_build(records: Sequence[Record]) -> list[Record]:
    """Leave out what was compiled to configure the build."""
    return [r for r in records if not any(_CONFIGURATION.search(str(o)) for o in r.outputs)]


def _name(record: Record) -> str:
    """Return the name of the kept record of the objects of ``record``."""
    text = "\0".join(map(str, record.outputs))
    return hashlib.sha256(os.fsencode(text)).hexdigest()[:32]


def _read(path: Path) -> Record | None:
    """Return a record; None if it was cut short or makes no object."""
    fields = [os.fsdecode(field) for field in path.read_bytes().split(b"\0")[:-1]]
    if len(fields) <= _FEWEST or fields[0] != HEADER or fields[-1] != END:
        return None
    _, mode, folder, logs, *rest = fields[:-1]
    set_there = [word.partition("=") for word in takewhile(_is_variable, rest)]
    compiler, *words = rest[len(set_there) :]
    # A response file may be gone after the compile, so its words take its place.
    arguments = expanded(words)
    outputs = _outputs(Path(folder), arguments, linked=_is_linked(mode, arguments))
    if not outputs:
        return None
    place = Path(logs) if logs else None
    variables = {name: value for name, _, value in set_there}
    return Record(mode, Path(folder), place, compiler, tuple(arguments), outputs, variables)


def _is_variable(word: str) -> bool:
    name, equals, _ = word.partition("=")
    return bool(equals) and name in COMPILER_VARIABLES


def _is_linked(mode: str, arguments: Sequence[str]) -> bool:
    is_link = mode in (LINKED, UNDER_POLICY_BY_LTO)
    return is_link or (mode == BY_LTO and "-c" not in arguments)


def _outputs(folder: Path, arguments: list[str], *, linked: bool) -> tuple[Path, ...]:
    """Return what a compile with ``arguments`` in ``folder`` makes: objects, or one program."""
    named = None
    sources = []
    words = iter(arguments)
    for word in words:
        if word == "-o":
            named = next(words, None)
        elif word.startswith("-o") and not word.startswith(("-object", "-openmp")):
            named = word[2:]
        elif word in _WITH_VALUE:
            next(words, None)
        elif not word.startswith("-") and Path(word).suffix in _SOURCES:
            sources.append(Path(word))
    if named is not None:
        return (_absolute(folder, named),)
    if linked:
        return (_absolute(folder, "a.out"),)
    return tuple(_absolute(folder, f"{source.stem}.o") for source in sources)


def _absolute(folder: Path, name: str) -> Path:
    return Path(os.path.normpath(folder / name))
