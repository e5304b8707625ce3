"""Policies that need no file of the user's."""

from pathlib import Path
from typing import Final

from nestor.policy.rule import VALUE
from nestor.regalloc.builtins import AllocationBuiltins

NAME: Final = "regalloc-priority"

BUILTINS: Final = AllocationBuiltins(
    NAME,
    VALUE,
    Path(__file__).parent / "data",
    shipped="shipped-priority",
    features={"heaviest": ("weight", 1.0), "smallest": ("li_size", -1.0)},
)
"""Within the classes of the stock heuristic, ``heaviest`` allocates live ranges of great spill
weight earlier, and ``smallest`` short ones. ``shipped-priority`` is the one to use."""
