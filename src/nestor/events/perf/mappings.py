"""Which file lies where in memory, as mappings say one after the other."""

import bisect

from nestor.events.perf.script import Mapping


class Mappings:
    """The mappings that stand, none of which overlap."""

    def __init__(self) -> None:
        self._starts: list[int] = []
        self._standing: list[Mapping] = []
        """In the order of their starts, and so of their ends."""

    def __len__(self) -> int:
        return len(self._standing)

    def add(self, mapping: Mapping) -> None:
        """Take a mapping in the place of earlier ones that it overlaps."""
        if not mapping.size:
            return
        first = bisect.bisect_right(self._starts, mapping.start)
        if first and self._at(first - 1, mapping.start) is not None:
            first -= 1
        behind = bisect.bisect_left(self._starts, mapping.start + mapping.size)
        self._starts[first:behind] = [mapping.start]
        self._standing[first:behind] = [mapping]

    def find(self, address: int) -> Mapping | None:
        """Return the mapping that holds an address; None if there is none."""
        number = bisect.bisect_right(self._starts, address) - 1
        return self._at(number, address) if number >= 0 else None

    def _at(self, number: int, address: int) -> Mapping | None:
        mapping = self._standing[number]
        return mapping if address - mapping.start < mapping.size else None
