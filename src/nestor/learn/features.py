"""Which features the policies for inlining read, unless a user names others.

All are what the release advisor computes from one look at each function, or what a summary says.
Left out are the cost analysis's parts, which need a second analysis of each site, LLVM's counts
over the call graph, which say how large the module is, and ``call_hotness``.
"""

from typing import Final

from nestor.compiler.site_features import SITE_FEATURES

FREE_FEATURES: Final = (
    "cost_estimate",
    "nr_ctant_params",
    "callee_basic_block_count",
    "caller_basic_block_count",
    "callee_conditionally_executed_blocks",
    "caller_conditionally_executed_blocks",
)
"""What the stock heuristic computes anyway: next to no cost (docs/guide/use-in-a-build.md)."""

DISTIL_FEATURES: Final = (
    "inlining_default",
    *FREE_FEATURES,
    "is_callee_avail_external",
    "is_caller_avail_external",
    *(name for name in SITE_FEATURES if name != "call_hotness"),
)
"""Of the site, its module, and the program if there is a summary."""

MODULE_FEATURES: Final = tuple(name for name in DISTIL_FEATURES if not name.startswith("program_"))
"""The same without a summary. Under LTO there is none: the module is the program."""

CHEAP_FEATURES: Final = (
    "inlining_default",
    "cost_estimate",
    "nr_ctant_params",
    "callee_basic_block_count",
    "caller_basic_block_count",
    "callee_disappears",
    "callee_has_comdat",
    "callee_uses",
    "callee_code_size",
)
"""Few enough for learners that move a policy's parameters blindly; the last bounds what they do."""
