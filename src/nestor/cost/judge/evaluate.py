"""Judge a cost model by measured blocks: how far off, where, how sure, how fast."""

import resource
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from nestor.cost.blocks.splits import sequence_groups
from nestor.cost.blocks.table import Table, TableError
from nestor.cost.contract import CostModel, Prediction
from nestor.cost.isa.block_categories import categories
from nestor.cost.isa.decoding import DecodeError, sequence
from nestor.cost.judge import metrics
from nestor.cost.judge.metrics import Coverage, Interval, Quality

F64 = NDArray[np.float64]
Bools = NDArray[np.bool_]

WORST_SHOWN: Final = 10
_WARM_UP: Final = bytes.fromhex("90")
_LENGTHS: Final = ((1, 1), (2, 3), (4, 6), (7, 10), (11, 20), (21, None))


@dataclass(frozen=True)
class Worst:
    """A block that the model is far off on."""

    block_hex: str
    measured: float
    """Cycles."""
    predicted: float
    """Cycles."""
    spread: float | None
    """Of the label; None if unknown."""
    error: float
    """|ln predicted − ln measured|: twice and half are equally wrong."""


@dataclass(frozen=True)
class Judged:
    """One model on some rows, as it predicted them."""

    predicted: Prediction
    """All rows of the table; NaN where the model has no answer."""
    usable: Bools
    """Rows with a label and an answer ``[n]``."""
    failed: int
    """Rows with a label but without an answer."""
    unlabelled: int
    seconds: float
    """CPU time of the prediction, decoding included."""


@dataclass(frozen=True)
class Evaluation:
    """What came out."""

    every: Quality
    """All usable rows."""
    stable: Quality
    """Those with a stable label."""
    mape_interval: Interval
    """Of the stable rows, or of all if none is."""
    coverage: Coverage
    """Of the 90 % interval, on the same rows."""
    failed: int
    unlabelled: int
    blocks_per_second: float
    """Of CPU time."""
    by_length: dict[str, Quality]
    """Stable rows (or all) by their number of instructions."""
    by_category: dict[str, Quality]
    """The same by ``nestor.cost.isa.block_categories``; a block counts in each of its own."""
    worst: tuple[Worst, ...]

    def to_json(self) -> dict[str, Any]:
        """Return the numbers as they are printed; what cannot be said is null."""
        return {
            **asdict(self.every),
            "blocks_per_second": self.blocks_per_second,
            "stable_only": asdict(self.stable),
            "failed": self.failed,
            "unlabelled": self.unlabelled,
            "mape_interval": [self.mape_interval.low, self.mape_interval.high],
            "coverage": asdict(self.coverage),
            "by_length": {name: asdict(quality) for name, quality in self.by_length.items()},
            "by_category": {name: asdict(quality) for name, quality in self.by_category.items()},
            "worst": [asdict(block) for block in self.worst],
        }


def cpu_seconds() -> float:
    """Return the CPU time of this process and of the children that it waited for.

    What one core does in a second, whatever else the machine has to do.
    """
    own, waited = (
        resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    )
    return own.ru_utime + own.ru_stime + waited.ru_utime + waited.ru_stime


def judge(model: CostModel, table: Table, clock: Callable[[], float] = cpu_seconds) -> Judged:
    """Let ``model`` predict every row of ``table``, after one block that is not timed.

    :raises TableError: if no row has a label, or the model answers none.
    """
    _require_labels(table)
    model.predict([_WARM_UP])
    start = clock()
    predicted = model.predict(table.blocks)
    return judged(predicted, table, max(1e-9, clock() - start))


def judged(predicted: Prediction, table: Table, seconds: float) -> Judged:
    """Return which rows of predictions that took ``seconds`` can be judged.

    :raises TableError: if no row has a label and an answer.
    """
    _require_labels(table)
    answered = np.isfinite(predicted.cycles) & (predicted.cycles > 0)
    usable = table.labelled & answered
    if not usable.any():
        raise TableError("The model answers none of the labelled blocks; are they x86-64 code?")
    failed = int((table.labelled & ~answered).sum())
    return Judged(predicted, usable, failed, int((~table.labelled).sum()), seconds)


def _require_labels(table: Table) -> None:
    if not table.labelled.any():
        raise TableError(
            "No row has a number of cycles to judge by; 'nestor blocks measure' adds it."
        )


def evaluate(model: CostModel, table: Table, *, seed: int = 0) -> Evaluation:
    """Judge ``model`` by ``table``.

    :param seed: of the bootstrap.
    :raises TableError: if no row can be judged.
    """
    return assess(judge(model, table), table, seed=seed)


def assess(rows: Judged, table: Table, *, seed: int = 0) -> Evaluation:
    """Return the numbers of predictions that are there."""
    stable = rows.usable & table.stable
    shown = np.flatnonzero(stable if stable.any() else rows.usable)
    part, cycles = table.select(shown), rows.predicted.cycles[shown]
    errors = metrics.absolute_errors(cycles, part.cycles)
    return Evaluation(
        _quality(rows, table, rows.usable),
        _quality(rows, table, stable),
        metrics.interval(errors, sequence_groups(part), seed=seed),
        metrics.coverage(rows.predicted.low[shown], rows.predicted.high[shown], part.cycles),
        rows.failed,
        rows.unlabelled,
        len(table) / rows.seconds,
        _by_length(cycles, part),
        _by_category(cycles, part),
        _worst(cycles, part),
    )


def _quality(judged: Judged, table: Table, rows: Bools) -> Quality:
    return metrics.quality(judged.predicted.cycles[rows], table.cycles[rows])


def _by_length(cycles: F64, table: Table) -> dict[str, Quality]:
    lengths = np.array([_length(block) for block in table.blocks])
    found = {}
    for low, high in _LENGTHS:
        inside = (lengths >= low) & (lengths <= (high or np.inf))
        name = str(low) if low == high else f"{low}-{high}" if high else f"{low}+"
        found[name] = metrics.quality(cycles[inside], table.cycles[inside])
    return {name: quality for name, quality in found.items() if quality.n}


def _by_category(cycles: F64, table: Table) -> dict[str, Quality]:
    members: dict[str, list[int]] = {}
    for row, block in enumerate(table.blocks):
        for name in _categories(block):
            members.setdefault(name, []).append(row)
    return {
        name: metrics.quality(cycles[rows], table.cycles[rows])
        for name, rows in sorted(members.items(), key=lambda item: (-len(item[1]), item[0]))
    }


def _length(block: bytes) -> int:
    try:
        return len(sequence(block))
    except DecodeError:
        return 0


def _categories(block: bytes) -> Sequence[str]:
    try:
        return sorted(categories(block))
    except DecodeError:
        return ()


def _worst(cycles: F64, table: Table) -> tuple[Worst, ...]:
    errors = np.abs(np.log(cycles / table.cycles))
    return tuple(
        Worst(
            table.blocks[i].hex(),
            float(table.cycles[i]),
            float(cycles[i]),
            float(table.spread[i]) if np.isfinite(table.spread[i]) else None,
            float(errors[i]),
        )
        for i in np.argsort(-errors, kind="stable")[:WORST_SHOWN].tolist()
    )
