"""Which features the policies for eviction read, unless a user names others.

They are the compiler's own and those that follow from them
(:mod:`nestor.problems.regalloc_eviction.question`).
"""

from typing import Final

from nestor.problem.problem import FeatureSets
from nestor.problems.regalloc_eviction.question import (
    CANDIDATE_COUNT,
    DEFAULT,
    DERIVED,
    IS_OWN,
    LLVM_22,
    OF_DEFAULT,
    WEIGHT_TO_LEAST,
    WEIGHT_TO_OWN,
)

_FREE: Final = (*LLVM_22.per_candidate, *DERIVED, *LLVM_22.per_question, CANDIDATE_COUNT)

_COMPARED: Final = (
    IS_OWN,
    WEIGHT_TO_OWN,
    WEIGHT_TO_LEAST,
    "is_hint",
    "is_local",
    "nr_broken_hints",
    "weighed_reads_by_max",
    "weighed_writes_by_max",
    "hottest_bb_freq_by_max",
    "liverange_size",
)
"""What is also read of the candidate that the stock heuristic chooses."""

_ALL: Final = (DEFAULT, *_FREE, *(f"{name}{OF_DEFAULT}" for name in _COMPARED))

FEATURES: Final = FeatureSets(
    free=_FREE,
    few=(DEFAULT, IS_OWN, "position", *LLVM_22.per_candidate, WEIGHT_TO_OWN, WEIGHT_TO_LEAST),
    unit=_ALL,
    program=_ALL,
)
