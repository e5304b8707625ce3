"""Which instructions a scheduling model gets wrong, by blocks that were measured.

A block's error belongs to all of its instructions. So the form is looked for that, once its own
median error is taken out of every block that has it, saves the most; then the next among what is
left, as matching pursuit does. A form that only stands beside a wrong one gets no blame for it.
"""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

F64 = NDArray[np.float64]
I64 = NDArray[np.int64]

_LEAST_CYCLES = 0.05
"""Estimates below this count as this."""
_SHOWN = 3


@dataclass(frozen=True)
class AuditSettings:
    """What counts as a finding."""

    fewest: int = 5
    """Blocks with different sequences of forms that must have the form."""
    least: float = 0.1
    """Of the logarithm: a factor nearer to 1 than exp of this is none."""
    most: int = 200
    """Findings."""


@dataclass(frozen=True)
class Finding:
    """A form, or an instruction, and how far off the estimates of its blocks are."""

    name: Hashable
    blocks: int
    """Blocks that have it, each sequence of forms once."""
    ratio: float
    """Median of estimated by measured cycles of these."""
    factor: float
    """What of it belongs to this form, others' findings taken out."""
    saved: float
    """Summed absolute error of logarithms that the factor takes out of these blocks."""
    agreeing: float
    """Share of the blocks whose estimate is off to the same side, by more than the least factor."""
    examples: tuple[int, ...]
    """The shortest blocks that show it: rows of the table."""


def audit(
    names: Sequence[frozenset[str]],
    keys: Sequence[Hashable],
    lengths: I64,
    estimated: F64,
    measured: F64,
    settings: AuditSettings | None = None,
) -> tuple[Finding, ...]:
    """Return the forms whose blocks are estimated wrong, worst first.

    :param names: the forms of each block ``[n]``.
    :param keys: equal for blocks that differ in registers and constants only ``[n]``: the block of
        median error stands for them, so that no frequent sequence decides.
    :param lengths: instructions of each block ``[n]``.
    :param estimated: cycles by the scheduling model ``[n]``; rows with NaN are left out.
    :param measured: cycles ``[n]``.
    """
    settings = settings or AuditSettings()
    errors = np.log(np.maximum(estimated, _LEAST_CYCLES)) - np.log(measured)
    rows = _one_of_each(keys, errors)
    raw, left = errors[rows], errors[rows].copy()
    places: dict[str, list[int]] = {}
    for place, row in enumerate(rows.tolist()):
        for name in names[row]:
            places.setdefault(name, []).append(place)
    blocks = {k: np.array(v) for k, v in places.items() if len(v) >= settings.fewest}
    gains = {name: _saving(left[at])[0] for name, at in blocks.items()}
    found: list[Finding] = []
    while gains and len(found) < settings.most:
        # What others took out before makes a saving smaller, hardly ever larger: look again only
        # at the one that seems the best.
        name = max(gains, key=lambda one: (gains[one], one))
        at = blocks[name]
        gain, shift = _saving(left[at])
        if gain < gains[name] - 1e-9:
            gains[name] = gain
            continue
        del gains[name]
        if abs(shift) < settings.least or gain <= 0:
            if gain <= 0:
                break
            continue
        same_side = np.sign(shift) * raw[at] > settings.least
        near = np.abs(left[at] - shift)
        order = np.lexsort((near, lengths[rows[at]], ~same_side))[:_SHOWN]
        found.append(
            Finding(
                name,
                len(at),
                float(np.exp(np.median(raw[at]))),
                float(np.exp(shift)),
                gain,
                float(same_side.mean()),
                tuple(rows[at[order]].tolist()),
            )
        )
        left[at] -= shift
    return tuple(sorted(found, key=lambda one: -one.saved))


def _saving(errors: F64) -> tuple[float, float]:
    """Return what taking the median out of ``errors`` saves, and the median."""
    shift = float(np.median(errors))
    return float(np.abs(errors).sum() - np.abs(errors - shift).sum()), shift


def _one_of_each(keys: Sequence[Hashable], errors: F64) -> I64:
    """Return a row for each key: that of median error."""
    groups: dict[Hashable, list[int]] = {}
    for row in np.flatnonzero(np.isfinite(errors)).tolist():
        groups.setdefault(keys[row], []).append(row)
    middle = [
        sorted(group, key=lambda row: (errors[row], row))[(len(group) - 1) // 2]
        for group in groups.values()
    ]
    return np.array(sorted(middle), dtype=np.int64)
