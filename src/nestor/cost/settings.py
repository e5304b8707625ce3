"""Names and settings of the cost models, without what the work itself imports.

Command lines and their help need nothing else.
"""

from dataclasses import dataclass
from typing import Final, Literal, get_args

BaselineKind = Literal["llvm-mca", "bound", "lstm", "granite"]
"""Published or analytical models, for comparison."""
Kind = Literal["own", "llvm-mca", "bound", "lstm", "granite"]
"""What can be trained."""
SplitName = Literal["random", "sequence-disjoint"]
"""How the rows that judge a model are drawn (``nestor.cost.blocks.splits``)."""

BASELINES: Final[tuple[BaselineKind, ...]] = get_args(BaselineKind)
SPLITS: Final[tuple[SplitName, ...]] = get_args(SplitName)

FITS: Final = 4
"""Fits to a few labels of a new machine that its model is the mean of."""


@dataclass(frozen=True)
class TrainerSettings:
    """What only some kinds of model need."""

    minutes: float = 12.0
    """CPU time for lstm and granite, on one thread."""
    cpu: str = "znver5"
    """The processor that llvm-mca models, as LLVM names it."""
