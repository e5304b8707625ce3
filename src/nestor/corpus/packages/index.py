"""The archive's index: which source packages it has, how large they are, in which language.

The language is read off the binary packages: C++ if one of them depends on libstdc++6, else C if
one depends on libc6 and none of the build dependencies is the compiler of another language. That is
what the archive's own builds have found out with ``dpkg-shlibdeps``, so nothing has to be
downloaded to know it.
"""

import hashlib
import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from nestor.errors import NestorError
from nestor.files import write_atomically

Language = Literal["c", "c++"]

_ARCHITECTURES: Final = frozenset({"any", "linux-any", "amd64", "any-amd64"})
_NAME: Final = re.compile(r"[a-z0-9][a-z0-9.+-]*")
_CXX: Final = frozenset({"libstdc++6", "libc++1"})
_C: Final = frozenset({"libc6", "libc6.1"})
_OTHERS: Final = re.compile(
    r"(golang(-\S+)?|gccgo(-\S+)?|dh-golang|cargo|rustc|dh-cargo|ghc|haskell-\S+|ocaml(-\S+)?"
    r"|dh-ocaml|gnat(-\S+)?|fp-compiler|fpc|gfortran(-\S+)?|ldc|gdc|dmd|sbcl|chicken-bin|guile-\S+"
    r"|mlton|swi-prolog\S*|valac|nim|zig|crystal|erlang-dev|default-jdk\S*|mono-devel|cython3?)"
)
"""Build dependencies that say that much of the code is in another language."""


class PackageIndexError(NestorError):
    """An index that cannot be used."""


@dataclass(frozen=True)
class SourcePackage:
    """A source package of the archive."""

    name: str
    bytes: int
    """Of all its files, compressed."""
    language: Language | None
    """None if it is in neither, or builds nothing for this architecture."""


@dataclass(frozen=True)
class Index:
    """All source packages by name, in order of name."""

    packages: tuple[SourcePackage, ...]
    digest: str
    """A sha256 of what a draw depends on: names, sizes and languages."""


def has_lists(folder: Path) -> bool:
    """Tell whether a folder has lists of sources and of binary packages."""
    return bool(_lists(folder, "Sources")) and bool(_lists(folder, "Packages"))


def copy_lists(source: Path, folder: Path) -> None:
    """Copy the lists of an archive into ``folder``."""
    for path in (*_lists(source, "Sources"), *_lists(source, "Packages")):
        write_atomically(folder / path.name, path.read_bytes())


def read_index(folder: Path) -> Index:
    """Read the lists of an archive: files whose names end in ``Sources`` and ``Packages``.

    Of several versions of a package the largest counts.

    :raises PackageIndexError: if there is none of either.
    """
    sources, binaries = _lists(folder, "Sources"), _lists(folder, "Packages")
    if not sources or not binaries:
        raise PackageIndexError(
            f"{folder} has no lists of an archive (files named …Sources and …Packages); leave"
            " --index out, or name a new folder, and they are downloaded."
        )
    needs: dict[str, set[str]] = defaultdict(set)
    for path in binaries:
        for entry in _paragraphs(path):
            if entry.get("Architecture") != "all":
                name = entry.get("Source", entry.get("Package", "")).partition(" ")[0]
                needs[name] |= _names(entry.get("Depends", ""))
                needs[name] |= _names(entry.get("Pre-Depends", ""))
    found: dict[str, SourcePackage] = {}
    for path in sources:
        for entry in _paragraphs(path):
            name = entry.get("Package", "")
            if not _NAME.fullmatch(name):
                continue
            size = _size(entry.get("Checksums-Sha256", ""))
            if name not in found or found[name].bytes < size:
                found[name] = SourcePackage(name, size, _language(entry, needs[name]))
    packages = tuple(found[name] for name in sorted(found))
    text = "\n".join(f"{p.name} {p.bytes} {p.language}" for p in packages)
    return Index(packages, hashlib.sha256(text.encode()).hexdigest())


def _lists(folder: Path, end: str) -> list[Path]:
    return sorted(path for path in folder.glob(f"*{end}") if path.is_file())


def _language(source: dict[str, str], needs: set[str]) -> Language | None:
    if _ARCHITECTURES.isdisjoint(source.get("Architecture", "").split()):
        return None
    fields = ("Build-Depends", "Build-Depends-Arch")
    build = set().union(*(_names(source.get(field, "")) for field in fields))
    if any(_OTHERS.fullmatch(name) for name in build):
        return None
    if needs & _CXX:
        return "c++"
    return "c" if needs & _C else None


def _names(dependencies: str) -> set[str]:
    """Return the package names of a field of dependencies, all alternatives."""
    words = re.split(r"[,|]", dependencies)
    return {re.split(r"[\s(:\[<]", word.strip(), maxsplit=1)[0] for word in words} - {""}


def _size(checksums: str) -> int:
    """Return the bytes of the files of a source package."""
    lines = (line.split() for line in checksums.splitlines())
    return sum(int(words[1]) for words in lines if len(words) == 3 and words[1].isdigit())


def _paragraphs(path: Path) -> Iterator[dict[str, str]]:
    """Yield the paragraphs of a list as fields; a line that continues one keeps its line break."""
    entry: dict[str, str] = {}
    field = ""
    with path.open(encoding="utf-8", errors="replace") as lines:
        for line in lines:
            if line == "\n":
                if entry:
                    yield entry
                entry, field = {}, ""
            elif line[0] in " \t":
                if field in entry:
                    entry[field] += line
            else:
                field, _, value = line.partition(":")
                entry[field] = value.strip()
        if entry:
            yield entry
