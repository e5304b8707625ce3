"""What whole functions cost: the sum of frequency times throughput over their blocks.

The estimate is static: it knows no cache misses, no mispredicted branches, and counts nothing for
the jumps and calls between the blocks. It tells how two builds of one function compare, and where
the cycles of a function go.
"""

import csv
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from nestor.cost.contract import CostModel, ModelError, Prediction
from nestor.cost.predict.answers import answers
from nestor.cost.sources.functions import Function
from nestor.files import read_regular_text

F64 = NDArray[np.float64]

Frequencies = Mapping[tuple[str, int], float]
"""How often a block runs, by function and by the block's number in it, from 0."""


@dataclass(frozen=True)
class FunctionCost:
    """One function's predicted cycles, if every block runs as often as its frequency says."""

    function: Function
    frequency: tuple[float, ...]
    """Of each block."""
    predicted: Prediction
    """Of each block; NaN where the model has no answer."""

    @property
    def failed(self) -> int:
        """Blocks that run and have no answer: the sums leave them out."""
        return int((~np.isfinite(self.predicted.cycles) & (np.array(self.frequency) > 0)).sum())

    @property
    def reasons(self) -> tuple[str, ...]:
        """Why blocks that run have no answer, each reason once."""
        return tuple(
            dict.fromkeys(
                text for row, text in self.predicted.refused.items() if self.frequency[row] > 0
            )
        )

    @property
    def untrained(self) -> tuple[str, ...]:
        """Opcodes of blocks that run which the model never saw in training."""
        return tuple(
            dict.fromkeys(
                name
                for row, names in self.predicted.untrained.items()
                if self.frequency[row] > 0
                for name in names
            )
        )

    @property
    def cycles(self) -> float:
        """The sum of frequency times cycles; NaN if no block that runs has an answer."""
        return self._sum(self.predicted.cycles)

    @property
    def low(self) -> float:
        """The same of the blocks' lower ends, as if all erred together: wider than 90 %."""
        return self._sum(self.predicted.low)

    @property
    def high(self) -> float:
        """The same of the upper ends."""
        return self._sum(self.predicted.high)

    def _sum(self, values: F64) -> float:
        frequency = np.array(self.frequency)
        answered = np.isfinite(self.predicted.cycles)
        if self.failed and not (answered & (frequency > 0)).any():
            return float("nan")
        return float((np.where(answered, values, 0.0) * frequency).sum())


def read_frequencies(path: Path) -> Frequencies:
    """Return the profile in a CSV file with the columns ``function,block,count``.

    :raises NestorError: if the file is of another kind.
    """
    found: dict[tuple[str, int], float] = {}
    lines = read_regular_text(path, "frequencies").splitlines()
    try:
        rows = csv.DictReader(lines)
        if not {"function", "block", "count"} <= set(rows.fieldnames or ()):
            raise ModelError(f"'{path}' has no header 'function,block,count'; add it.")
        for row in rows:
            key = (row["function"], int(row["block"]))
            count = float(row["count"])
            if not (math.isfinite(count) and count >= 0 and key[1] >= 0):
                raise ValueError("a number is negative or not finite")
            found[key] = found.get(key, 0.0) + count
    except (csv.Error, ValueError, TypeError) as error:
        raise ModelError(
            f"'{path}' is not a profile of lines 'function,block,count' ({error}); correct it."
        ) from None
    return found


def unmatched(frequencies: Frequencies, functions: Sequence[Function]) -> int:
    """Return how many blocks of a profile are not in ``functions``.

    :raises ModelError: if none is: the profile is of other code.
    """
    present = {(f.name, number) for f in functions for number in range(len(f.blocks))}
    missing = len(set(frequencies) - present)
    if missing and missing == len(frequencies):
        raise ModelError(
            "The profile names no block of this code; --list-blocks shows functions and numbers."
        )
    return missing


def predict(
    model: CostModel, functions: Sequence[Function], frequencies: Frequencies | None = None
) -> list[FunctionCost]:
    """Return what each function costs; the most expensive first.

    :param frequencies: None: every block runs once. Else blocks that are not in it do not run.
    """
    predicted = answers(model, [block for function in functions for block in function.blocks])
    costs, start = [], 0
    for function in functions:
        own = predicted.part(start, start + len(function.blocks))
        start += len(function.blocks)
        counts = [
            1.0 if frequencies is None else frequencies.get((function.name, number), 0.0)
            for number in range(len(function.blocks))
        ]
        costs.append(FunctionCost(function, tuple(counts), own))
    return sorted(costs, key=_most_expensive_first)


def _most_expensive_first(cost: FunctionCost) -> tuple[float, str]:
    return (-cost.cycles if np.isfinite(cost.cycles) else np.inf, cost.function.name)
