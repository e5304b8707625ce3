"""Fit the parameters of a simulated core to labels, by coordinate descent.

Latencies, ports and slots are small whole numbers and the simulation is no smooth function of them,
so each form's are improved in turn by trying others on the blocks that contain it. The first round
moves all variants of a form together, later ones each alone; a form too rare to show anything
keeps the values of its category.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nestor.cost.machine import (
    ALU,
    DIVIDER,
    FLOAT,
    FLOAT_DIVIDER,
    FLOAT_STORE,
    PORT_CHOICES,
    VARIANTS,
    CoreParameters,
    ports,
)
from nestor.cost.simulation import F64, I64, Simulator
from nestor.progress import Progress, silent

Row = tuple[int, int, int, int, int, int, int, int]


@dataclass(frozen=True)
class FittingSettings:
    """How hard to look for better parameters."""

    passes: int = 2
    """Rounds over all forms."""
    blocks: int = 160
    """Blocks to judge one form by, at most."""
    alike: int = 2
    """Of these with the same sequence of forms, at most, so that no frequent one decides."""
    fewest: int = 4
    """Blocks that a form must occur in, to be fitted at all."""
    tolerance: float = 0.03
    """Summed log error that a change must save, so that rare forms do not follow noise."""


def fit(
    simulator: Simulator,
    core: CoreParameters,
    rows: I64,
    cycles: F64,
    settings: FittingSettings | None = None,
    seed: int = 0,
    progress: Progress = silent,
) -> CoreParameters:
    """Return ``core`` with the parameters of its forms fitted to the kept blocks ``rows``.

    :param cycles: labels of all kept blocks.
    """
    settings = settings or FittingSettings()
    random = np.random.default_rng(seed)
    labels = np.log(cycles)
    uses: dict[int, list[int]] = {}
    for block in rows:
        for number in set(simulator.forms(int(block)).tolist()):
            uses.setdefault(number, []).append(int(block))
    forms = np.array(core.forms)
    simulator.set_core(core)
    for round_ in range(settings.passes):
        groups: dict[int, list[int]] = {}
        for number in uses:
            groups.setdefault(number // VARIANTS if round_ == 0 else number, []).append(number)
        order = sorted(groups, key=lambda g: (-sum(len(uses[n]) for n in groups[g]), g))
        for done, group in enumerate(order):
            blocks = np.unique(np.concatenate([uses[n] for n in groups[group]]))
            blocks = _various(simulator, random.permutation(blocks), settings)
            if len(blocks) < settings.fewest:
                continue
            _improve(simulator, forms, groups[group], blocks, labels[blocks], settings.tolerance)
            if done % 16 == 0:
                progress(f"Fitting the core, round {round_ + 1}", done, len(order))
        progress(f"Fitting the core, round {round_ + 1}", len(order), len(order))
    return CoreParameters(core.settings, forms)


def _various(simulator: Simulator, blocks: I64, settings: FittingSettings) -> I64:
    """Return some of ``blocks``, no sequence of forms too often."""
    taken: dict[bytes, int] = {}
    kept = []
    for block in blocks:
        sequence = simulator.forms(int(block)).tobytes()
        taken[sequence] = taken.get(sequence, 0) + 1
        if taken[sequence] <= settings.alike:
            kept.append(block)
            if len(kept) == settings.blocks:
                break
    return np.array(kept, dtype=np.int64)


def _improve(
    simulator: Simulator,
    forms: NDArray[np.int32],
    numbers: list[int],
    blocks: I64,
    labels: F64,
    tolerance: float,
) -> None:
    """Try other parameters for the form's variants ``numbers`` and keep the best in ``forms``."""
    current = np.zeros(len(blocks))
    errors = np.zeros(len(blocks))
    best = simulator.loss(blocks, labels, None, current)
    first = best
    for _ in range(2):
        start = best
        for field in range(len(_FIELDS)):
            kept = tuple(int(x) for x in forms[numbers[0]])
            for row in _FIELDS[field](kept):  # type: ignore[arg-type]
                values = np.array(row, dtype=np.int32)
                for number in numbers:
                    simulator.set_form(number, values)
                loss = simulator.loss(blocks, labels, current, errors)
                if loss < best - tolerance - 0.004 * len(blocks):
                    best, kept = loss, row
                    current[:] = errors
            forms[numbers] = kept
            for number in numbers:
                simulator.set_form(number, forms[number])
        if best > start - 0.02 * first:
            return


def _around(value: int, small: range, least: int) -> list[int]:
    """Return other values near and far: a few small ones, steps, and factors."""
    near = {value + d for d in (-2, -1, 1, 2)} | {value * f // 10 for f in (5, 8, 9, 11, 13, 20)}
    return sorted(v for v in near | set(small) if v >= least and v != value)


def _latencies(row: Row) -> Iterator[Row]:
    for value in _around(row[1], range(5), 0):
        yield (row[0], value, *row[2:])


def _slots(row: Row) -> Iterator[Row]:
    for value in _around(row[0], range(1, 3), 1):
        yield (value, *row[1:])


def _first_ports(row: Row) -> Iterator[Row]:
    for mask in _alternatives(row[2]):
        yield (*row[:2], mask, max(row[3], 1), *row[4:])
    for count in _around(row[3], range(3), 0):
        yield (*row[:2], (row[2] or ALU) if count else 0, count, *row[4:])


def _busy(row: Row) -> Iterator[Row]:
    if row[3]:
        for value in _around(row[6], range(1, 4), 1):
            yield (*row[:6], min(value, 500), row[7])


def _second_ports(row: Row) -> Iterator[Row]:
    if row[3]:
        for mask in _SECOND:
            if mask != row[4]:
                yield (*row[:4], mask, max(row[5], 1), *row[6:])
    if row[5]:
        for count in _around(row[5], range(3), 0):
            yield (*row[:4], row[4] if count else 0, count, *row[6:])


def _load_extra(row: Row) -> Iterator[Row]:
    for value in range(row[7] - 2, row[7] + 3):
        if -3 <= value <= 12 and value != row[7]:
            yield (*row[:7], value)


def _alternatives(mask: int) -> list[int]:
    """Return other sets of ports on the same side of the core, or of both if there is none yet."""
    if mask & (FLOAT | FLOAT_STORE | FLOAT_DIVIDER):
        sides = FLOAT | FLOAT_STORE | FLOAT_DIVIDER
    elif mask:
        sides = ALU | DIVIDER
    else:
        sides = ALU | FLOAT | FLOAT_STORE
    return [choice for choice in PORT_CHOICES if choice != mask and not choice & ~sides]


_SECOND = (
    ports(0),
    ports(0, 1, 2),
    ALU,
    ports(16),
    FLOAT_STORE,
    ports(12, 13),
    ports(13, 14),
    FLOAT,
)

_FIELDS = (_latencies, _slots, _first_ports, _busy, _second_ports, _load_extra)
