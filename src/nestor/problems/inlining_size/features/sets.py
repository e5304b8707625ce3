"""Which features the policies for inlining read, unless a user names others.

All are what the release advisor computes from one look at each function, or what a summary says.
Left out are the cost analysis's parts, which need a second analysis of each site, LLVM's counts
over the call graph, which say how large the module is, how often code runs, and what only a
trial says.
"""

from typing import Final

from nestor.problem.problem import FeatureSets
from nestor.problems.inlining_size.features.site import (
    FREQUENCIES,
    SITE_FEATURES,
    SUMMARY_PREFIX,
    TRIALS,
)
from nestor.problems.inlining_size.log import DEFAULT

_FREE = (
    "cost_estimate",
    "nr_ctant_params",
    "callee_basic_block_count",
    "caller_basic_block_count",
    "callee_conditionally_executed_blocks",
    "caller_conditionally_executed_blocks",
)
_PROGRAM = (
    DEFAULT,
    *_FREE,
    "is_callee_avail_external",
    "is_caller_avail_external",
    *(name for name in SITE_FEATURES if name not in FREQUENCIES and name not in TRIALS),
)

FEATURES: Final = FeatureSets(
    free=_FREE,
    few=(
        DEFAULT,
        "cost_estimate",
        "nr_ctant_params",
        "callee_basic_block_count",
        "caller_basic_block_count",
        "callee_disappears",
        "callee_has_comdat",
        "callee_uses",
        "callee_code_size",
    ),
    unit=tuple(name for name in _PROGRAM if not name.startswith(SUMMARY_PREFIX)),
    program=_PROGRAM,
    extent=("callee_code_size", "callee_instructions"),
    mode="program_link_gc",
    modes=("no-gc", "gc", "icf"),
)
