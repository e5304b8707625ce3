"""Choose the blocks whose labels say the most of a machine that nothing was measured on yet.

A label teaches what the forms of its block cost, each further one of the same form less. So blocks
are taken one after the other, the one that adds the most to the sum over forms of
``weight × log(1 + blocks taken)``: common forms often, rare ones a few times. Most of the blocks
come from a plain draw, which is like what the model will be asked.
"""

import heapq
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from nestor.cost.core.simulator import I64, Simulator


@dataclass(frozen=True)
class ChoiceSettings:
    """How blocks are chosen."""

    count: int = 3000
    drawn: float = 0.8
    """Share of them that is drawn at random."""
    power: float = 0.5
    """The weight of a form is the number of its sequences to this power."""
    cost: float = 0.5
    """A block's worth is divided by its number of instructions to this power: in a short one the
    label is plainly that of its forms."""


def choose(blocks: Sequence[bytes], settings: ChoiceSettings | None = None, seed: int = 0) -> I64:
    """Return the rows of ``blocks`` to measure, in rising order."""
    settings = settings or ChoiceSettings()
    simulator = Simulator()
    decodable = simulator.keep(blocks)
    order = np.random.default_rng(seed).permutation(np.flatnonzero(decodable))
    first: dict[bytes, int] = {}
    for row in order.tolist():
        first.setdefault(simulator.forms(row).tobytes(), row)
    rows = list(first.values())  # one of each sequence
    if len(order) <= settings.count:
        return np.sort(order)
    taken = set(order[: round(settings.count * settings.drawn)].tolist())
    rows += taken - set(rows)
    forms = {row: np.unique(simulator.forms(row)).tolist() for row in rows}
    lengths = {row: len(simulator.forms(row)) for row in rows}
    uses: dict[int, int] = {}
    for of_row in forms.values():
        for form in of_row:
            uses[form] = uses.get(form, 0) + 1
    weights = {form: math.pow(count, settings.power) for form, count in uses.items()}
    counts = dict.fromkeys(uses, 0)
    for row in taken:
        for form in forms[row]:
            counts[form] += 1

    def worth(row: int) -> float:
        gain = sum(weights[form] * math.log1p(1 / (1 + counts[form])) for form in forms[row])
        return gain / math.pow(lengths[row], settings.cost)

    drawn = {simulator.forms(row).tobytes() for row in taken}
    heap = [(-worth(row), row) for sequence, row in first.items() if sequence not in drawn]
    heapq.heapify(heap)
    while heap and len(taken) < settings.count:
        _, row = heapq.heappop(heap)
        now = -worth(row)
        if heap and now > heap[0][0]:  # worth falls only: what is still first is the best
            heapq.heappush(heap, (now, row))
            continue
        taken.add(row)
        for form in forms[row]:
            counts[form] += 1
    return np.array(sorted(taken), dtype=np.int64)
