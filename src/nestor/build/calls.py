"""What a run of a program called."""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Calls:
    """The calls of a program's run, by the ids of functions."""

    edges: Mapping[tuple[int, int], int] = field(default_factory=dict)
    """By calling and called function: calls that are left in the binary."""
    entries: Mapping[int, int] = field(default_factory=dict)
    """All calls of each function of the binary; one that never ran has 0."""
