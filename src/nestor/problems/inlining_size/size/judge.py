"""How far predicted sizes are off: by function, by module, and in what they say of a change.

A reward needs changes: what a function weighs under other decisions less what it weighs under
stock. A predictor may be good at sizes and useless for changes, because a function's own error,
which is in both sizes, is larger than the change.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from nestor.problems.inlining_size.size.examples import Compiled, Examples
from nestor.problems.inlining_size.size.fit import linear
from nestor.problems.inlining_size.size.function_log import FunctionLog
from nestor.problems.inlining_size.size.model import columns

F64 = npt.NDArray[np.float64]
Predictor = Callable[[FunctionLog], F64]
"""Bytes of each function of a log, ``[functions]``."""


@dataclass(frozen=True)
class Errors:
    """One predictor's errors."""

    functions: int
    mean_pct: float
    """Mean of |error| / bytes of functions."""
    median_pct: float
    mean_bytes: float
    """Mean |error| of functions."""
    module_pct: float
    """Median |error| of a module's sum, in per cent of it."""
    changes: int
    """Functions that both compiles of their module have and that differ."""
    change_correlation: float
    """Of predicted and real changes in bytes."""
    change_sign_pct: float
    """Part of the changes whose sign is predicted, of those that are not 0."""
    module_change_correlation: float
    """The same for what a module's functions change by in sum, those that come or go included."""


def affine(examples: Examples, count: str) -> Predictor:
    """Return the predictor that is a constant and so many bytes per ``count``, least squares."""
    fitted = linear(columns(examples.counts, examples.x, [count]), examples.y)
    return lambda log: fitted.base(columns(log.counts, log.values, [count]))


def judge(predict: Predictor, pairs: Sequence[tuple[Compiled, Compiled]]) -> Errors:
    """Return the errors of ``predict`` on compiles of modules, each by stock and by another."""
    off, real, sums, changes, totals = [], [], [], [], []
    for stock, other in pairs:
        before, after = (_by_name(one, predict(one.log)) for one in (stock, other))
        guessed, weighed = (np.array(v) for v in zip(*before.values(), strict=True))
        off.append(np.abs(guessed - weighed))
        real.append(weighed)
        sums.append(abs(guessed.sum() / weighed.sum() - 1))
        both = [n for n in before if n in after and before[n] != after[n]]
        change = [np.subtract(after[name], before[name]) for name in both]
        changes += change
        gone = [np.negative(before[name]) for name in before if name not in after]
        new = [np.array(after[name]) for name in after if name not in before]
        totals.append(np.array([np.zeros(2), *change, *gone, *new]).sum(axis=0))
    error, weight = np.concatenate(off), np.concatenate(real)
    moves, total = np.array(changes).reshape(-1, 2), np.array(totals)
    moved = moves[moves[:, 1] != 0]
    return Errors(
        functions=len(error),
        mean_pct=float(100 * (error / weight).mean()),
        median_pct=float(100 * np.median(error / weight)),
        mean_bytes=float(error.mean()),
        module_pct=float(100 * np.median(sums)),
        changes=len(moves),
        change_correlation=_correlation(moves),
        change_sign_pct=100 * _agreement(moved),
        module_change_correlation=_correlation(total),
    )


def _by_name(one: Compiled, predicted: F64) -> Mapping[str, tuple[float, float]]:
    """Return predicted and real bytes by name of the functions that have both."""
    real = one.bytes_by_name()
    return {
        name: (float(guess), float(real[name]))
        for name, guess in zip(one.log.names, predicted, strict=True)
        if name in real
    }


def _agreement(pairs: F64) -> float:
    """Return the part of ``pairs`` of which both have one sign."""
    signs = np.sign(pairs)
    return float((signs[:, 0] == signs[:, 1]).mean()) if len(pairs) else float("nan")


def _correlation(pairs: F64) -> float:
    one, other = pairs[:, 0], pairs[:, 1]
    if not len(pairs) or one.min() == one.max() or other.min() == other.max():
        return float("nan")
    return float(np.corrcoef(one, other)[0, 1])
