"""Do held-out projects share code with training? Compare machine code, function by function.

A policy is judged on projects that it never saw. Copies of libraries, vendored files and common
headers can break that without anybody's intent, so every function of the stock compiler's
objects is hashed: its bytes with relocated fields masked, and what the relocations name. Equal
hashes are shared code, whoever wrote it first.
"""

import hashlib
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from nestor.compiler.objects import ObjectError
from nestor.corpus.model import Corpus, Split
from nestor.progress import Progress, silent

LEAST_BYTES = 64
"""Smaller functions are equal by accident."""

LARGEST_SHARE_PCT = 1.0
"""How much of a held-out project's code may be in training."""

# The standard library's templates are everybody's.
_STANDARD = (
    "_ZNSt", "_ZSt", "_ZNKSt", "_ZZNSt", "_ZZNKSt", "_ZZSt", "_ZN9__gnu_cxx", "_ZNK9__gnu_cxx",
)  # fmt: skip
_TEXT = ".text."
_MOST_NAMES = 5


@dataclass(frozen=True)
class Shared:
    """Code of one project that another project of another split has as well."""

    project: str
    split: Split
    other: str
    other_split: Split
    functions: int
    bytes: int
    examples: tuple[str, ...]
    """The largest of the functions, by name."""


@dataclass(frozen=True)
class ProjectOverlap:
    """How much of one held-out project's code training has seen."""

    project: str
    split: Split
    functions: int
    bytes: int
    """Of all its functions of at least :data:`LEAST_BYTES`, each once."""
    shared_functions: int
    shared_bytes: int

    @property
    def shared_pct(self) -> float:
        """The shared part in per cent of the bytes."""
        return 100.0 * self.shared_bytes / self.bytes if self.bytes else 0.0


@dataclass(frozen=True)
class Overlap:
    """The held-out projects, most shared first, and every pair that shares code."""

    projects: tuple[ProjectOverlap, ...]
    pairs: tuple[Shared, ...]
    unread: tuple[str, ...]
    """Modules without an object."""

    @property
    def ok(self) -> bool:
        """Every held-out project is new to training."""
        return all(p.shared_pct <= LARGEST_SHARE_PCT for p in self.projects)

    def to_json(self) -> dict[str, Any]:
        """Return the result as plain data."""
        return {
            "ok": self.ok,
            "largest_share_pct": LARGEST_SHARE_PCT,
            "projects": [asdict(p) | {"shared_pct": p.shared_pct} for p in self.projects],
            "pairs": [asdict(p) for p in self.pairs],
            "unread": list(self.unread),
        }


@dataclass(frozen=True)
class Compiled:
    """A corpus and the stock compiler's objects by the names of its modules."""

    corpus: Corpus
    objects: Mapping[str, Path]
    """Modules that are absent are named in the result."""


def overlap(corpora: Sequence[Compiled], progress: Progress = silent) -> Overlap:
    """Compare the projects of one corpus, or of several as if they were one, across splits.

    A project whose name an earlier corpus has already gets its corpus's folder in front.
    """
    code: dict[str, dict[str, tuple[int, str]]] = {}
    splits: dict[str, Split] = {}
    unread = []
    total, done = sum(len(c.corpus.modules) for c in corpora), 0
    for compiled in corpora:
        corpus = compiled.corpus
        names = {
            p.name: f"{corpus.root.name}/{p.name}" if p.name in splits else p.name
            for p in corpus.projects
        }
        splits |= {names[project]: split for project, split in corpus.splits.items()}
        for module in corpus.modules:
            progress("Comparing functions", done, total)
            done += 1
            try:
                found = list(functions(compiled.objects[module.name]))
            except (KeyError, ObjectError):
                unread.append(module.name)
                continue
            own = code.setdefault(names[module.project], {})
            own |= {digest: (size, name) for digest, size, name in found}
    progress("Comparing functions", total, total)
    projects = sorted(code)
    held_out = [name for name in projects if splits[name] != "train"]
    trained = [name for name in projects if splits[name] == "train"]
    seen = {digest for name in trained for digest in code[name]}
    shares = [_project(name, splits[name], code[name], seen) for name in held_out]
    pairs = [
        _pair(name, splits[name], other, splits[other], code)
        for name in held_out
        for other in projects
        if splits[other] != splits[name] and (splits[other] == "train" or other > name)
    ]
    return Overlap(
        projects=tuple(sorted(shares, key=lambda p: (-p.shared_pct, p.project))),
        pairs=tuple(
            sorted((p for p in pairs if p.bytes), key=lambda p: (-p.bytes, p.project, p.other))
        ),
        unread=tuple(unread),
    )


def functions(path: Path) -> Iterator[tuple[str, int, str]]:
    """Yield hash, bytes and name of each function of an object that counts.

    The object must have been compiled with one section a function.

    :raises ObjectError: if the file cannot be read as ELF.
    """
    import lief  # slow to import

    lief.logging.disable()
    binary = lief.ELF.parse(str(path)) if path.exists() else None
    if binary is None:
        raise ObjectError(f"'{path}' is no ELF object.")
    fields: dict[str, list[tuple[int, int, str]]] = defaultdict(list)
    for relocation in binary.object_relocations:
        section = relocation.section
        if section is not None and str(section.name).startswith(_TEXT):
            fields[str(section.name)].append(
                (relocation.address, relocation.size // 8, _target(relocation))
            )
    for section in binary.sections:
        name = str(section.name)
        function = name.removeprefix(_TEXT)
        if not name.startswith(_TEXT) or function.startswith(_STANDARD):
            continue
        if section.size >= LEAST_BYTES:
            yield _hash(bytes(section.content), fields[name]), section.size, function


def _target(relocation: Any) -> str:
    """Return what a relocation names; private data has no name of its own."""
    import lief

    symbol = relocation.symbol
    if symbol is None or not symbol.name or symbol.type == lief.ELF.Symbol.TYPE.SECTION:
        return ""
    return str(symbol.name)


def _hash(content: bytes, fields: Sequence[tuple[int, int, str]]) -> str:
    masked = bytearray(content)
    named = hashlib.sha256()
    for offset, size, target in sorted(fields):
        masked[offset : offset + size] = bytes(size)
        named.update(f"{offset}:{target}\0".encode())
    return hashlib.sha256(bytes(masked) + named.digest()).hexdigest()


def _project(
    name: str, split: Split, code: Mapping[str, tuple[int, str]], seen: set[str]
) -> ProjectOverlap:
    shared = code.keys() & seen
    return ProjectOverlap(
        project=name,
        split=split,
        functions=len(code),
        bytes=sum(size for size, _ in code.values()),
        shared_functions=len(shared),
        shared_bytes=sum(code[digest][0] for digest in shared),
    )


def _pair(
    name: str,
    split: Split,
    other: str,
    other_split: Split,
    code: Mapping[str, Mapping[str, tuple[int, str]]],
) -> Shared:
    shared = sorted((code[name][d] for d in code[name].keys() & code[other].keys()), reverse=True)
    return Shared(
        project=name,
        split=split,
        other=other,
        other_split=other_split,
        functions=len(shared),
        bytes=sum(size for size, _ in shared),
        examples=tuple(function for _, function in shared[:_MOST_NAMES]),
    )
