"""The contract of back ends."""

from collections.abc import Sequence
from typing import Protocol

from nestor.cost.measure.label import Measurement
from nestor.progress import Progress


class Backend(Protocol):
    """A way to measure blocks on this machine."""

    @property
    def name(self) -> str:
        """What rows are marked with; labels of different names are not comparable."""

    def measure(self, blocks: Sequence[bytes], progress: Progress) -> list[Measurement]:
        """Return one row for each block, in order; a bad block is a row with its status."""
