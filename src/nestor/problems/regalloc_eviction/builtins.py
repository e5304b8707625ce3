"""Policies that need no file of the user's."""

from pathlib import Path
from typing import Final

from nestor.policy.rule import PICK
from nestor.problems.regalloc_eviction.question import IS_OWN, POSITION, WEIGHT
from nestor.regalloc.builtins import AllocationBuiltins

NAME: Final = "regalloc-eviction"

BUILTINS: Final = AllocationBuiltins(
    NAME,
    PICK,
    Path(__file__).parent / "data",
    shipped="shipped-eviction",
    features={
        "first": (POSITION, -1.0),
        "keep": (IS_OWN, 1.0),
        "lowest-density": (WEIGHT, -1.0),
    },
)
"""``shipped-eviction`` is the one to use: a portfolio of which the compiler keeps the best.
``first`` frees the first register that it may, ``keep`` evicts nothing where it need not, and
``lowest-density`` takes the candidate of the smallest spill weight, the one that asks included."""
