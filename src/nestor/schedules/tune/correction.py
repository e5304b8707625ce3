"""What measurements of one payload say beyond a policy that has learned from others.

A policy predicts the logarithm of a choice's speed. How far it is off at the choices that were
measured tells how far it is off near them: a Gaussian process over the differences, with the
policy as its mean and choices a few options apart as neighbours (Rasmussen and Williams, Gaussian
Processes for Machine Learning, 2006, sections 2.2 and 2.7).
"""

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

from nestor.schedules.language.decisions import Decision

Numbers = npt.NDArray[np.float64]

_REACH: Final = 0.5
"""How far a difference reaches, in parts of a decision's options, summed over decisions."""
_LEAST_SPREAD: Final = 0.3
"""Standard deviation of a policy's error before anything is measured, as a logarithm of time."""
_NOISE: Final = 0.1
"""Standard deviation of a measured time, and of what two equal choices differ by."""
_CURIOSITY: Final = 0.3
"""Standard deviations by which an uncertain choice is taken for faster than predicted."""


def positions(choices: Sequence[Mapping[str, int]], decisions: Sequence[Decision]) -> Numbers:
    """Return where choices lie, ``[choices, decisions]``: from 0, a first option, to 1, a last."""
    steps = [
        {option: at / max(1, len(d.options) - 1) for at, option in enumerate(d.options)}
        for d in decisions
    ]
    return np.array(
        [[s[c[d.name]] for s, d in zip(steps, decisions, strict=True)] for c in choices],
        np.float64,
    ).reshape(len(choices), len(decisions))


def corrected(
    logits: Numbers, at: Numbers, measured: Numbers, predicted: Numbers, measured_at: Numbers
) -> Numbers:
    """Return what to expect of choices, higher is better, and better still where it is uncertain.

    :param logits: what the policy predicts of them, ``[choices]``: logarithms of speed, of which
        only differences count.
    :param at: where they lie, ``[choices, decisions]``, as ``positions`` says.
    :param measured: logarithms of the speed of what was measured, ``[measured]``.
    :param predicted: what the policy predicts of that.
    :param measured_at: where that lies, ``[measured, decisions]``.
    """
    if not len(measured):
        return logits
    errors = measured - predicted
    errors = errors - errors.mean()
    spread = max(_LEAST_SPREAD, float(errors.std()))
    inner = _covariance(measured_at, measured_at, spread) + _NOISE**2 * np.eye(len(measured))
    outer = _covariance(at, measured_at, spread)
    weights = np.linalg.solve(inner, outer.T).T
    variance = np.maximum(spread**2 - (weights * outer).sum(axis=1), 0.0)
    return np.asarray(logits + weights @ errors + _CURIOSITY * np.sqrt(variance), np.float64)


def _covariance(one: Numbers, other: Numbers, spread: float) -> Numbers:
    distance = np.abs(one[:, None, :] - other[None, :, :]).sum(axis=2)
    return np.asarray(spread**2 * np.exp(-distance / _REACH), np.float64)
