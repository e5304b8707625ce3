"""What was measured of one program, as a file that a stopped run goes on from."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.optimal.graph import Graph, Inlined
from nestor.files import write_atomically

ByMode = Mapping[str, float]
"""Bytes by link mode."""


@dataclass
class Part:
    """One component."""

    graph: Graph
    keys: tuple[int, ...]
    """The key of each site."""
    costs: tuple[int, ...]
    """LLVM's cost estimate of each site where it was first asked about."""
    base: ByMode
    """Bytes of its functions where nothing is inlined."""
    values: dict[Inlined, ByMode] = field(default_factory=dict)
    """What each cluster adds to that."""
    offers: dict[Inlined, Inlined] = field(default_factory=dict)
    """The copies of calls that the build of each cluster asked about, and keeps."""
    exact: bool = True
    """Whether copies of calls are, or will be, answered in every way too; False if those are too
    many. Every answer to the sites of the source is measured in any case."""
    measured: dict[str, ByMode] = field(default_factory=dict)
    """Bytes of its functions in whole builds, by the name of who decided."""
    stock: tuple[bool, ...] = ()
    """The stock compiler's answers to the sites of the source."""

    @property
    def enumerated(self) -> bool:
        """Whether every answer to the sites of the source was measured."""
        return all(cluster in self.values for cluster in self.graph.clusters())

    @property
    def own_keys(self) -> tuple[int, ...]:
        """The keys of the sites of the source."""
        return self.keys[: self.graph.own]


@dataclass
class Record:
    """One program."""

    program: str
    language: str
    level: str
    parts: list[Part]

    def save(self, path: Path) -> None:
        """Write the file, whole or not at all."""
        parts = [
            {
                "sites": [list(map(str, site)) for site in part.graph.sites],
                "keys": list(map(str, part.keys)),
                "costs": list(part.costs),
                "base": dict(part.base),
                "copies": part.graph.copies,
                "values": [
                    [sorted(c), dict(v), sorted(part.offers.get(c, ()))]
                    for c, v in part.values.items()
                ],
                "exact": part.exact,
                "measured": {name: dict(by_mode) for name, by_mode in part.measured.items()},
                "stock": list(part.stock),
            }
            for part in self.parts
        ]
        content = {
            "program": self.program,
            "language": self.language,
            "level": self.level,
            "parts": parts,
        }
        write_atomically(path, json.dumps(content))


def load(path: Path) -> Record:
    """Read what :meth:`Record.save` wrote."""
    content = json.loads(path.read_text())
    parts = [
        Part(
            Graph(
                tuple((int(caller), int(callee)) for caller, callee in part["sites"]),
                part["copies"],
            ),
            tuple(map(int, part["keys"])),
            tuple(part["costs"]),
            part["base"],
            {frozenset(cluster): values for cluster, values, _ in part["values"]},
            {frozenset(cluster): frozenset(copies) for cluster, _, copies in part["values"]},
            part["exact"],
            part["measured"],
            tuple(part["stock"]),
        )
        for part in content["parts"]
    ]
    return Record(content["program"], content["language"], content["level"], parts)


def record_path(work: Path, program: str) -> Path:
    """Return the file of one program."""
    return work / f"{program.replace('/', '.')}.json"
