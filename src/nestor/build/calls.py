"""What a run of a program called."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Calls:
    """The calls of a program's run, by the ids of functions."""

    edges: Mapping[tuple[int, int], int] = field(default_factory=dict)
    """By calling and called function: calls that are left in the binary."""
    entries: Mapping[int, int] = field(default_factory=dict)
    """All calls of each function of the binary; one that never ran has 0."""

    def to_json(self) -> dict[str, Any]:
        """Return plain data."""
        edges = [[*functions, number] for functions, number in self.edges.items()]
        return {"edges": edges, "entries": [list(entry) for entry in self.entries.items()]}

    @staticmethod
    def from_json(data: Mapping[str, Any]) -> "Calls":
        """Return the calls of which ``data`` is :meth:`to_json`."""
        edges = {(int(a), int(b)): int(number) for a, b, number in data["edges"]}
        return Calls(edges, {int(function): int(number) for function, number in data["entries"]})
