"""What a policy may read of a live range that waits for a register.

The stock heuristic gives each live range a number (``DefaultPriorityAdvisor`` in
llvm/lib/CodeGen/RegAllocGreedy.cpp): its highest bits are classes, its lowest 24 bits, the *rank*,
are the size of the live range or its place in the block. A policy's answer scales the rank by a
power of two.
"""

from typing import Final

from nestor.problem.problem import FeatureSets

NAMES: Final = ("li_size", "stage", "weight", "rank", "is_global", "has_hint", "is_local")
"""In the order of the plugin (``native/plugin/regalloc/PriorityPolicy.cpp``):

``li_size``    size of the live range, in slots of the instructions' numbering
``stage``      1 if it may be assigned a register, 0 if it waits to be split
``weight``     spill weight, at most 1e30
``rank``       the lowest 24 bits of the stock priority
``is_global``  1 if the stock priority has the bit of live ranges across blocks
``has_hint``   1 if the stock priority has the bit of live ranges with a preferred register
``is_local``   1 if the live range lies within one basic block
"""

DEFAULT: Final = "default_answer"
"""The column with the answer that keeps the stock priority: 0."""

FEATURES: Final = FeatureSets(
    free=NAMES,
    few=("weight", "li_size", "rank", "is_local", "has_hint"),
    unit=NAMES,
    program=NAMES,
)
