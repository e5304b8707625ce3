"""Is a kernel's result that of numpy, on inputs that it has never seen?"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from nestor.schedules.kernel.calling import DTYPES, Array, Kernel, empty
from nestor.schedules.payload.reading import TensorType
from nestor.schedules.payload.reference import Reference

_STEPS: Final = {"f64": 2.0**-52, "f32": 2.0**-23, "f16": 2.0**-10, "bf16": 2.0**-7}
_SLACK: Final = 16.0
"""Roundings that a result may be off, times the root of what it may sum up."""
_MOST: Final = 0.05
"""No result may be off by more, however coarse its type."""


@dataclass(frozen=True)
class Verdict:
    """How far a kernel's results are from numpy's."""

    correct: bool
    worst: float
    """The largest difference, as a part of the largest reference value."""
    allowed: float
    """The largest such part that counts as correct."""
    reason: str = ""
    """What is wrong, if anything."""


def fresh_inputs(kinds: Sequence[TensorType], seed: int) -> list[Any]:
    """Return random arguments: normal for floats, small for integers."""
    random = np.random.default_rng(seed)
    found: list[Any] = []
    for kind in kinds:
        if kind.element == "i1":
            values = random.integers(0, 2, kind.shape).astype(np.bool_)
        elif kind.element[0] in "ix":
            values = random.integers(-8, 8, kind.shape).astype(DTYPES[kind.element])
        elif kind.element == "bf16":
            values = to_bf16(random.standard_normal(kind.shape).astype(np.float32))
        else:
            values = random.standard_normal(kind.shape).astype(DTYPES[kind.element])
        if kind.tensor:
            array = empty(kind)
            array[...] = values
            found.append(array)
        else:
            found.append(values.item())
    return found


def verify(kernel: Kernel, reference: Reference, seed: int) -> Verdict:
    """Compare one call of a kernel with numpy."""
    inputs = fresh_inputs(kernel.arguments, seed)
    before = [np.array(i, copy=True) for i in inputs]
    results = [empty(kind) for kind in kernel.results]
    for result in results:  # what is left over from another call must not pass for a result
        result.view(np.uint8).fill(0x5A)
    kernel(*inputs, out=results)
    for number, (old, new) in enumerate(zip(before, inputs, strict=True), 1):
        if not np.array_equal(old, np.asarray(new), equal_nan=old.dtype.kind == "f"):
            return Verdict(False, float("inf"), 0.0, f"the kernel wrote to argument {number}")
    wide = [_wide(i, k) for i, k in zip(inputs, kernel.arguments, strict=True)]
    return compare(results, reference(*wide), kernel)


def compare(results: Sequence[Array], expected: Sequence[Any], kernel: Kernel) -> Verdict:
    """Compare results with those of numpy."""
    worst = 0.0
    allowed = tolerance(kernel.arguments, kernel.results)
    for number, (result, right, kind) in enumerate(
        zip(results, expected, kernel.results, strict=True), 1
    ):
        got = np.asarray(_wide(result, kind), np.float64)
        right = np.asarray(right, np.float64)
        scale = float(np.max(np.abs(right), initial=0.0)) or 1.0
        difference = float(np.max(np.abs(got - right), initial=0.0)) / scale
        if not difference <= allowed:  # NaN too
            return Verdict(
                False, difference, allowed, f"result {number} is off by {difference:.2e} of its"
                f" largest value (allowed {allowed:.1e})",
            )  # fmt: skip
        worst = max(worst, difference)
    return Verdict(True, worst, allowed)


def tolerance(arguments: Sequence[TensorType], results: Sequence[TensorType]) -> float:
    """Return the part of the largest value by which a result may be off.

    Roundings of the results' type, times the root of the longest dimension, which bounds how many
    values are summed up; arguments are exact, whatever their type.
    """
    steps = [_STEPS[kind.element] for kind in results if kind.element in _STEPS]
    if not steps:
        return 0.0
    sizes = [size for kind in (*arguments, *results) for size in kind.shape]
    return min(_MOST, max(steps) * _SLACK * math.sqrt(max(sizes, default=1)))


def to_bf16(array: Array) -> Array:
    """Round single precision to the bits of bf16."""
    bits = array.view(np.uint32)
    rounded = bits + 0x7FFF + ((bits >> 16) & 1)
    return (rounded >> 16).astype(np.uint16)


def _wide(array: Any, kind: TensorType) -> Any:
    if kind.element == "bf16":
        return (np.asarray(array).astype(np.uint32) << 16).view(np.float32)
    return array
