"""Compare two builds of one program: which is faster, by how much, and whether that can be said.

What blocks compute is taken in proportion to instructions here: how a block is priced hangs on
where it is cut and with which others it is joined, which is another in each build, and that is more
than most builds differ by. The events are those of each build (docs/studies/programs.md has how
often this is right, and J). Nothing is said of a difference below the error of such ratios.
"""

import math
from dataclasses import dataclass
from typing import Literal

from nestor.program_cost.estimate import Estimate
from nestor.program_cost.quantities import QUANTITIES
from nestor.program_cost.weights import Weights, ratio_of

Verdict = Literal["faster", "slower", "too close to tell", "disagree"]


@dataclass(frozen=True)
class Comparison:
    """A build beside another."""

    ratio: float
    """Predicted cycles over those of the other; below 1 is faster."""
    executed_ratio: float
    """The same of J; NaN where a source does not count it."""
    error: float
    """Relative error of such ratios."""
    verdict: Verdict
    """``disagree``: beyond the error, and J has the other order; rely on J's."""
    by_quantity: dict[str, float]
    """Change of each quantity, as a share of the other's cycles."""


def compare(own: Estimate, other: Estimate, weights: Weights) -> Comparison:
    """Return how ``own`` compares with ``other``, another build of the same program and input."""
    ratio = ratio_of(own.by_quantity, other.by_quantity, own.instructions / other.instructions)
    by_j = own.executed / other.executed if other.executed else math.nan
    changes = {
        name: (own.by_quantity[name] - other.by_quantity[name]) / other.cycles
        for name in QUANTITIES
    }
    return Comparison(
        ratio, by_j, weights.ratio_error, _verdict(ratio, by_j, weights.ratio_error), changes
    )


def _verdict(ratio: float, by_j: float, error: float) -> Verdict:
    if abs(ratio - 1) <= error:
        return "too close to tell"
    if math.isfinite(by_j) and (by_j - 1) * (ratio - 1) < 0:
        return "disagree"
    return "faster" if ratio < 1 else "slower"
