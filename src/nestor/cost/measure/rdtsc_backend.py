"""Back end ``rdtsc``: our own harness, for machines without counters."""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from nestor.cost.measure.harness import OK, HarnessSettings, Reading, readings, warm_up
from nestor.cost.measure.label import Measurement, label, quiet_strain, quiet_value
from nestor.cost.measure.screen import screen
from nestor.progress import Progress

_REMEMBERED: Final = 50_000
"""Rounds, which is minutes."""


@dataclass
class Rdtsc:
    """Blocks in passes over the whole batch, until each has enough quiet ones."""

    harness: Path
    settings: HarnessSettings = field(default_factory=HarnessSettings)
    passes: int = 3
    """Quiet passes that make a label."""
    attempts: int = 10
    """Passes at most, on a busy machine."""
    _strains: deque[float] = field(default_factory=lambda: deque(maxlen=_REMEMBERED), init=False)
    """Of the last rounds: the longer we measure the better we know a quiet core."""

    @property
    def name(self) -> str:
        """``rdtsc``; repetitions kept apart are another quantity."""
        return "rdtsc" if self.settings.overlapping else "rdtsc-fenced"

    def measure(self, blocks: Sequence[bytes], progress: Progress) -> list[Measurement]:
        """Return one row for each block, in order.

        :raises HarnessError: if the harness cannot run.
        """
        if not self._strains:
            for reading in warm_up(self.harness, self.settings):
                self._strains += reading.strain
        screened = [screen(block) for block in blocks]
        found: list[list[Reading]] = [[] for _ in blocks]
        waiting = [index for index, (status, _) in enumerate(screened) if not status]
        runnable = len(waiting)
        for _ in range(self.attempts):
            if not waiting:
                break
            batch = [blocks[index] for index in waiting]
            for index, reading in zip(
                waiting, readings(self.harness, batch, self.settings), strict=True
            ):
                found[index].append(reading)
                self._strains += reading.strain
            quiet = quiet_strain(self._strains)
            waiting = [index for index in waiting if not self._enough(found[index], quiet)]
            progress("Measuring a batch", runnable - len(waiting), runnable)
        quiet = quiet_strain(self._strains) if self._strains else 1.0
        return [
            Measurement(block, status, instructions=count)
            if status
            else label(block, count, of_block, quiet, self.passes)
            for block, (status, count), of_block in zip(blocks, screened, found, strict=True)
        ]

    def _enough(self, of_block: Sequence[Reading], quiet: float) -> bool:
        if of_block[-1].status != OK:
            return True
        values = [quiet_value(reading, quiet) for reading in of_block]
        return sum(value is not None for value in values) >= self.passes
