"""Turn the passes over a block into a label: which rounds count, which passes agree.

The core may be shared, by another thread of it or another guest of the host. That slows blocks
down for seconds at a time, and by a factor that the calibration chain, which waits for its own
results, does not feel. The probe does: it fills the core. So only *quiet* rounds count, those
whose probe took as long as it takes at best; whether a round is quiet is decided without looking
at the block's own cycles.
"""

import dataclasses
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from nestor.cost.blocks.table import STABLE_SPREAD
from nestor.cost.measure.harness import OK, Reading

UNSTABLE: Final = "unstable"
"""The passes differ by :data:`STABLE_SPREAD` or more, or only one was quiet."""
DISTURBED: Final = "disturbed"
"""No pass was quiet; the label is the median of what was seen."""

_TOLERANCE: Final = 0.01
"""By which a quiet probe may differ from the best; it repeats within 0.3 %."""
_SUPPORT: Final = 0.02
"""Part of all probes that must agree on the best: a single fast one is an error of its clock."""
_QUIET_ROUNDS: Final = 3
"""That a pass must have to count."""


@dataclass(frozen=True)
class Measurement:
    """One row: the result of measuring one block."""

    block: bytes
    status: str
    """``ok``, ``unstable``, ``disturbed``, or what stopped the block; then nothing is measured."""
    cycles: float = math.nan
    """Core cycles per iteration, the median of the passes."""
    spread: float = math.nan
    """(max − min) / median of the passes; NaN for a single one."""
    passes: int = 0
    """Passes that count."""
    pages: int = 0
    """Pages touched."""
    instructions: int = 0
    calibration: float = math.nan
    """Core cycles in a step of the time stamp counter, the median of the passes."""


def quiet_strain(strains: Sequence[float]) -> float:
    """Return the probe's cycles on a quiet core: the smallest value that others confirm.

    :param strains: of all rounds so far, at least one.
    """
    values = np.sort(np.asarray(strains, dtype=np.float64))
    values = values[values > 0]
    support = max(2, math.ceil(_SUPPORT * len(values)))
    for index, value in enumerate(values.tolist()):
        confirmed = np.searchsorted(values, value * (1 + _TOLERANCE / 2), side="right") - index
        if confirmed >= support:
            return float(np.median(values[index : index + confirmed]))
    return float(np.median(values)) if len(values) else math.nan


def quiet_value(reading: Reading, quiet: float) -> float | None:
    """Return the median of a pass's quiet rounds; None if there are too few."""
    rounds = [
        cycles
        for cycles, strain in zip(reading.cycles, reading.strain, strict=True)
        if abs(strain / quiet - 1) <= _TOLERANCE
    ]
    enough = min(_QUIET_ROUNDS, max(1, len(reading.cycles)))
    return float(np.median(rounds)) if len(rounds) >= enough else None


def label(
    block: bytes, instructions: int, readings: Sequence[Reading], quiet: float, passes: int
) -> Measurement:
    """Return the row of a block from all its readings.

    :param quiet: see :func:`quiet_strain`.
    :param passes: how many quiet passes to take, the first ones.
    """
    # What stops a block may stop it in one pass only: near a limit, or with random data.
    stopped = next((r.status for r in readings if r.status != OK), None)
    if stopped is not None or not readings:
        return Measurement(block, stopped or DISTURBED, instructions=instructions)
    found = (quiet_value(reading, quiet) for reading in readings)
    values = [value for value in found if value is not None][:passes]
    calibration = 1 / float(np.median([reading.ticks_per_cycle for reading in readings]))
    pages = len(readings[0].pages)
    if values:
        return summary(block, instructions, values, pages, calibration)
    seen = float(np.median([cycles for reading in readings for cycles in reading.cycles]))
    row = summary(block, instructions, [seen], pages, calibration)
    return dataclasses.replace(row, status=DISTURBED, passes=0) if row.passes else row


def summary(
    block: bytes,
    instructions: int,
    values: Sequence[float],
    pages: int,
    calibration: float = math.nan,
) -> Measurement:
    """Return the row of a block from the cycles of its passes."""
    middle = float(np.median(values)) if values else 0.0
    if middle <= 0:
        return Measurement(block, "not measurable", instructions=instructions)
    spread = (max(values) - min(values)) / middle if len(values) > 1 else math.nan
    status = OK if spread < STABLE_SPREAD else UNSTABLE
    return Measurement(block, status, middle, spread, len(values), pages, instructions, calibration)
