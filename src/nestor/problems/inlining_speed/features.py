"""Which features policies for speed read, unless a user names others."""

from dataclasses import replace
from typing import Final

from nestor.problems.inlining_size.features import sets
from nestor.problems.inlining_size.features.site import FREQUENCIES

_UNIT: Final = (
    "inlining_default",
    "cost_estimate",
    "callee_basic_block_count",
    "caller_basic_block_count",
    "callee_conditionally_executed_blocks",
    "caller_conditionally_executed_blocks",
    "callee_is_local",
    "callee_is_discardable",
    "callee_call_uses",
    "callee_disappears",
    "callee_instructions",
    "callee_calls",
    "callee_loads",
    "callee_stores",
    "callee_returns",
    "callee_may_throw",
    "callee_is_leaf",
    "caller_is_local",
    "caller_call_uses",
    "caller_instructions",
    "call_arguments",
    "call_result_used",
    "call_is_invoke",
    "call_in_cold_block",
    "calls_to_callee_in_caller",
    *(name for name in FREQUENCIES if name != "call_hotness"),
)
"""How often a call runs, what inlining it costs, and the shape of both functions. With all features
of inlining for size beside them, gains were predicted no better on programs left out."""

FEATURES: Final = replace(
    sets.FEATURES,
    few=(*sets.FEATURES.few, "call_frequency", "call_executions", "call_profile_share"),
    unit=_UNIT,
    program=_UNIT,
    mode="",
    modes=(),
)
"""Without a summary of the program: the links of a program are not a question of speed."""
