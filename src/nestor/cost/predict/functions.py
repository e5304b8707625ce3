"""What whole functions cost: the sum of frequency times throughput over their blocks.

The estimate is static: it knows no cache misses, no mispredicted branches, and counts nothing for
the jumps and calls between the blocks. It tells how two builds of one function compare, and where
the cycles of a function go.
"""

import csv
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from nestor.cost.contract import CostModel, ModelError, Prediction
from nestor.cost.sources import objects
from nestor.cost.sources.collection import Collection
from nestor.cost.sources.splitting import Pieces

F64 = NDArray[np.float64]

Frequencies = Mapping[tuple[str, int], float]
"""How often a block runs, by function and by the block's number in it, from 0."""


@dataclass(frozen=True)
class Function:
    """The code of one function."""

    name: str
    """Empty where it has none."""
    source: str
    """The file, or the library with its member."""
    blocks: tuple[bytes, ...]
    """In the order of their addresses."""


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
    def cycles(self) -> float:
        """The sum of frequency times cycles."""
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
        answered = np.isfinite(self.predicted.cycles)
        total = np.where(answered, values, 0.0) * np.array(self.frequency)
        return float(total.sum())


@dataclass
class _Functions(Collection):
    """Keeps functions whole, where a table wants their blocks apart."""

    found: list[Function] = field(default_factory=list)

    def add_function(self, pieces: Pieces, source: str, function: str) -> None:
        """Add what a function was cut into."""
        super().add_function(pieces, source, function)
        if pieces.blocks:
            self.found.append(Function(function, source, tuple(pieces.blocks)))


def read(path: Path) -> tuple[Function, ...]:
    """Return the functions of an object, a program or a static library.

    :raises NestorError: if it is none of these.
    """
    into = _Functions()
    objects.read(path, into)
    return tuple(into.found)


def read_frequencies(path: Path) -> Frequencies:
    """Return the profile in a CSV file with the columns ``function,block,count``.

    :raises ModelError: if the file is of another kind.
    """
    found: dict[tuple[str, int], float] = {}
    try:
        with path.open(newline="", encoding="utf-8") as file:
            rows = csv.DictReader(file)
            if not {"function", "block", "count"} <= set(rows.fieldnames or ()):
                raise ModelError(f"'{path}' has no header 'function,block,count'; add it.")
            for row in rows:
                key = (row["function"], int(row["block"]))
                count = float(row["count"])
                if not (math.isfinite(count) and count >= 0 and key[1] >= 0):
                    raise ValueError("a number is negative or not finite")
                found[key] = found.get(key, 0.0) + count
    except (OSError, csv.Error, ValueError, TypeError) as error:
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
    predicted = model.predict([block for function in functions for block in function.blocks])
    costs, start = [], 0
    for function in functions:
        part = slice(start, start + len(function.blocks))
        start = part.stop
        counts = [
            1.0 if frequencies is None else frequencies.get((function.name, number), 0.0)
            for number in range(len(function.blocks))
        ]
        own = Prediction(predicted.cycles[part], predicted.low[part], predicted.high[part])
        costs.append(FunctionCost(function, tuple(counts), own))
    return sorted(costs, key=lambda cost: (-cost.cycles, cost.function.name))
