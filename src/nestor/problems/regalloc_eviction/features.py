"""Which features the policies for eviction read, unless a user names others.

They are the compiler's own (:data:`nestor.problems.regalloc_eviction.question.LLVM_22`) and those
that follow from them (:data:`nestor.problems.regalloc_eviction.question.DERIVED`).
"""

from typing import Final

from nestor.problem.problem import FeatureSets
from nestor.problems.regalloc_eviction.play import DEFAULT
from nestor.problems.regalloc_eviction.question import (
    CANDIDATE_COUNT,
    IS_OWN,
    LLVM_22,
    POSITION,
    WEIGHT_TO_LEAST,
    WEIGHT_TO_OWN,
)

QUESTION: Final = ("progress", CANDIDATE_COUNT)
"""What is the same for all candidates of a question."""

_FREE: Final = (*LLVM_22.per_candidate, POSITION, IS_OWN, WEIGHT_TO_OWN, WEIGHT_TO_LEAST, *QUESTION)

FEATURES: Final = FeatureSets(
    free=_FREE,
    few=(
        DEFAULT,
        IS_OWN,
        WEIGHT_TO_OWN,
        WEIGHT_TO_LEAST,
        "nr_broken_hints",
        "hottest_bb_freq_by_max",
        "liverange_size",
    ),
    unit=(DEFAULT, *_FREE),
    program=(DEFAULT, *_FREE),
)
