"""Does measuring again give the same labels, and are they those of a table?"""

import collections
import dataclasses
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from nestor.cost.blocks.table import Bools, Table
from nestor.cost.judge.metrics import F64, absolute_errors, quality
from nestor.cost.measure.backend import Backend
from nestor.cost.measure.harness import OK
from nestor.cost.measure.label import Measurement
from nestor.progress import Progress, silent

_BATCH: Final = 100
"""Blocks between the two measurements of one block: seconds, in which a machine changes."""
_LENGTHS: Final = ((1, 3), (4, 9), (10, 1 << 16))
"""Groups of blocks by their number of instructions."""


@dataclass(frozen=True)
class Agreement:
    """How far two series of cycles are apart, in per cent of the second; None for no blocks."""

    n: int
    mean: float | None
    median: float | None
    p95: float | None
    above_5: float | None
    """Per cent of the blocks that differ by more than 5 %."""
    ratio: float | None
    """Geometric mean of first / second."""
    kendall: float | None
    """Kendall's tau-b."""


@dataclass(frozen=True)
class SelfTest:
    """What a self-test found."""

    backend: str
    machine: str
    """Of this measurement."""
    table_machine: str
    """Of the table's labels; ``unknown`` if it does not say."""
    sample: int
    """Blocks drawn from the table's stable ones."""
    seed: int
    statuses: dict[str, dict[str, int]]
    """Rows by status in the two measurements."""
    stable: float
    """Per cent of the sample that is stable in both."""
    repeated: Agreement
    """Second against first measurement, blocks stable in both."""
    repeated_all: Agreement
    """The same on all blocks that have cycles in both."""
    against_table: Agreement
    """First measurement, where stable, against the table's labels."""
    against_table_by_length: dict[str, Agreement]
    """The same by number of instructions."""


def self_test(
    table: Table,
    backend: Backend,
    machine: str,
    *,
    sample: int = 2000,
    seed: int = 0,
    progress: Progress = silent,
) -> SelfTest:
    """Measure ``sample`` stable blocks of ``table`` twice, in turns of a hundred.

    :param seed: of the sample.
    """
    stable = np.flatnonzero(table.stable)
    drawn = np.random.default_rng(seed).choice(stable, min(sample, len(stable)), replace=False)
    chosen = table.select(drawn)
    first: list[Measurement] = []
    second: list[Measurement] = []
    for start in range(0, len(chosen), _BATCH):
        batch = chosen.blocks[start : start + _BATCH]
        for number, rows in enumerate((first, second)):
            rows += backend.measure(batch, silent)
            progress("Measuring twice", 2 * start + (number + 1) * len(batch), 2 * len(chosen))
    one, two = _cycles(first), _cycles(second)
    sure_one, sure_two = _stable(first), _stable(second)
    lengths = np.array([row.instructions for row in first])
    return SelfTest(
        backend=backend.name,
        machine=machine,
        table_machine=(chosen.machine or ("unknown",))[0],
        sample=len(chosen),
        seed=seed,
        statuses={
            name: dict(collections.Counter(row.status for row in rows).most_common())
            for name, rows in (("first", first), ("second", second))
        },
        stable=100 * float((sure_one & sure_two).mean()) if len(chosen) else 0.0,
        repeated=agreement(two, one, sure_one & sure_two),
        repeated_all=agreement(two, one, ~np.isnan(one) & ~np.isnan(two)),
        against_table=agreement(one, chosen.cycles, sure_one),
        against_table_by_length={
            _named(low, high): agreement(
                one, chosen.cycles, sure_one & (lengths >= low) & (lengths <= high)
            )
            for low, high in _LENGTHS
        },
    )


def agreement(first: F64, second: F64, rows: Bools) -> Agreement:
    """Compare two series of positive cycles ``[n]`` on the rows of a mask ``[n]``."""
    a, b = first[rows], second[rows]
    if not len(a):
        return Agreement(0, None, None, None, None, None, None)
    errors = absolute_errors(a, b)
    return Agreement(
        n=len(a),
        mean=float(errors.mean()),
        median=float(np.median(errors)),
        p95=float(np.percentile(errors, 95)),
        above_5=100 * float((errors > 5).mean()),
        ratio=math.exp(float(np.log(a / b).mean())),
        kendall=quality(a, b).kendall,
    )


def rounded(result: SelfTest) -> dict[str, object]:
    """Return the result as JSON values, numbers to four digits after the point."""

    def short(value: object) -> object:
        if isinstance(value, dict):
            return {key: short(inner) for key, inner in value.items()}
        return round(value, 4) if isinstance(value, float) else value

    return {key: short(value) for key, value in dataclasses.asdict(result).items()}


def _cycles(rows: Sequence[Measurement]) -> F64:
    return np.array([row.cycles for row in rows], dtype=np.float64)


def _stable(rows: Sequence[Measurement]) -> Bools:
    return np.array([row.status == OK for row in rows], dtype=np.bool_)


def _named(low: int, high: int) -> str:
    return f"{low} and more" if high >= 1 << 16 else f"{low} to {high}"
