"""Which features the policies for eviction read, unless a user names others.

They are the compiler's own (:data:`COMPILER`) and those that follow from them
(:data:`nestor.problems.regalloc_eviction.question.DERIVED`).
"""

from typing import Final

from nestor.problem.problem import FeatureSets
from nestor.problems.regalloc_eviction.play import DEFAULT
from nestor.problems.regalloc_eviction.question import (
    CANDIDATE_COUNT,
    IS_OWN,
    POSITION,
    WEIGHT,
    WEIGHT_TO_LEAST,
    WEIGHT_TO_OWN,
)

COMPILER: Final = (
    "is_free",
    "nr_urgent",
    "nr_broken_hints",
    "is_hint",
    "is_local",
    "nr_rematerializable",
    "nr_defs_and_uses",
    "weighed_reads_by_max",
    "weighed_writes_by_max",
    "weighed_read_writes_by_max",
    "weighed_indvars_by_max",
    "hint_weights_by_max",
    "start_bb_freq_by_max",
    "end_bb_freq_by_max",
    "hottest_bb_freq_by_max",
    "liverange_size",
    WEIGHT,
    "max_stage",
    "min_stage",
)
"""What LLVM 22 says of each candidate, besides the mask."""

QUESTION: Final = ("progress", CANDIDATE_COUNT)
"""What is the same for all candidates of a question."""

_FREE: Final = (*COMPILER, POSITION, IS_OWN, WEIGHT_TO_OWN, WEIGHT_TO_LEAST, *QUESTION)

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
