"""Find the objects of an ordinary build: files, members of static libraries, whole folders."""

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from nestor.corpus.archive import LIMIT, ArchiveError, is_archive, members
from nestor.errors import NestorError
from nestor.files import ReadError, read_regular

_SUFFIXES = frozenset({".o", ".obj", ".a"})
_ELF = b"\x7fELF"
_RELOCATABLE = 1
_BITCODE = (b"BC\xc0\xde", b"\xde\xc0\x17\x0b")


class BuiltError(NestorError):
    """What was named holds no objects that can be read."""


@dataclass(frozen=True)
class BuiltObject:
    """One relocatable ELF file."""

    name: str
    """Its path; of a library's member the library's and ``(member)``."""
    path: Path
    """Where it can be read: a library's member is a copy."""


@dataclass(frozen=True)
class Built:
    """The objects of a build, each content once."""

    objects: tuple[BuiltObject, ...]
    skipped: int
    """Files with the suffix of an object that hold something else."""


def find_objects(places: Sequence[Path], folder: Path) -> Built:
    """Return the objects that ``places`` name: objects, static libraries, folders of both.

    An object that is found again, such as a library's member beside the library, counts once. In
    a folder, libtool's second compilation for shared libraries (``.libs/x.o`` beside ``x.o``)
    does not count.

    :param folder: an empty folder for the members of libraries.
    :raises BuiltError: if a place is not there or no object, or a folder has none. What else a
        folder holds is counted: CMake leaves LLVM bitcode of a test there.
    """
    found: dict[str, BuiltObject] = {}
    skipped: list[tuple[str, str]] = []
    for place in places:
        for path in _files(place):
            try:
                contents = list(_contents(path))
            except ArchiveError as error:
                raise BuiltError(f"{path} {error}; build it again.") from None
            except ReadError as error:
                raise BuiltError(str(error)) from None
            for name, data in contents:
                digest = hashlib.sha256(data).hexdigest()
                problem = _problem(data)
                if problem is not None and path == place:
                    raise BuiltError(f"{name} is {problem}.")
                if problem is not None:
                    skipped.append((name, problem))
                elif digest not in found:
                    found[digest] = BuiltObject(name, _kept(path, name, data, folder / digest))
    if not found:
        named = ", ".join(map(str, places)) or "nothing"
        why = ": {} is {}".format(*skipped[0]) if skipped else "; build first"
        raise BuiltError(f"There is no object file in {named}{why}.")
    return Built(tuple(found.values()), len(skipped))


def _files(place: Path) -> Iterator[Path]:
    """Yield the files that may be objects or libraries, always in the same order."""
    if not place.exists():
        raise BuiltError(f"{place} does not exist; build first, or name where the objects are.")
    if not place.is_dir():
        yield place
        return
    for path in sorted(place.rglob("*")):
        twin = path.parent.name == ".libs" and (path.parent.parent / path.name).exists()
        if path.suffix in _SUFFIXES and path.is_file() and not twin:
            yield path


def _contents(path: Path) -> Iterator[tuple[str, bytes]]:
    """Yield name and content of the file, or of each member of a library."""
    content = read_regular(path, "an object or a library", limit=LIMIT)
    if not is_archive(content[:8]):
        yield str(path), content
        return
    for name, data in members(path):
        yield f"{path}({name})", data


def _problem(data: bytes) -> str | None:
    """Return why a file is no object that can be measured, and the remedy."""
    if data.startswith(_BITCODE):
        return "LLVM bitcode, of which nothing can be measured: build without -flto"
    if not data.startswith(_ELF):
        return "no object file: name objects, libraries or folders"
    if data[16:18] != _RELOCATABLE.to_bytes(2, "little"):
        return "a linked file: name the objects that it was linked from"
    return None


def _kept(path: Path, name: str, data: bytes, copy: Path) -> Path:
    if name == str(path):
        return path
    copy.write_bytes(data)
    return copy
