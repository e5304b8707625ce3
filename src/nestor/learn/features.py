"""Which features the policies for inlining read, unless a user names others.

All are what the release advisor computes from one look at each function, or what a summary says.
Left out are the cost analysis's parts, which need a second analysis of each site, LLVM's counts
over the call graph, which say how large the module is, and ``call_hotness``.
"""

from typing import Final

DISTIL_FEATURES: Final = (
    "inlining_default",
    "cost_estimate",
    "nr_ctant_params",
    "callee_basic_block_count",
    "caller_basic_block_count",
    "callee_conditionally_executed_blocks",
    "caller_conditionally_executed_blocks",
    "is_callee_avail_external",
    "is_caller_avail_external",
    "callee_is_local",
    "callee_is_discardable",
    "callee_has_comdat",
    "callee_uses",
    "callee_call_uses",
    "callee_address_taken",
    "callee_disappears",
    "callee_instructions",
    "callee_code_size",
    "callee_calls",
    "callee_invokes",
    "callee_landing_pads",
    "callee_allocas",
    "callee_loads",
    "callee_stores",
    "callee_returns",
    "callee_arguments",
    "callee_may_throw",
    "callee_is_cold",
    "callee_is_leaf",
    "caller_is_local",
    "caller_is_discardable",
    "caller_call_uses",
    "caller_instructions",
    "caller_code_size",
    "caller_calls",
    "caller_landing_pads",
    "caller_may_throw",
    "caller_is_cold",
    "call_arguments",
    "call_result_used",
    "call_is_invoke",
    "call_in_cold_block",
    "calls_to_callee_in_caller",
    "constant_argument_branches",
    "pointer_to_alloca_arguments",
    "program_callee_copies",
    "program_callee_bytes",
    "program_callee_calls",
    "program_callee_users",
    "program_callee_address_taken",
    "program_caller_copies",
    "program_caller_calls",
    "program_link_gc",
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

FREE_FEATURES: Final = (
    "cost_estimate",
    "nr_ctant_params",
    "callee_basic_block_count",
    "caller_basic_block_count",
    "callee_conditionally_executed_blocks",
    "caller_conditionally_executed_blocks",
)
"""What the stock heuristic computes anyway: next to no cost (docs/how-it-works.md)."""
