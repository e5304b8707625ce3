"""The features that the plugin offers behind LLVM's own.

docs/reference/formats.md says what they mean. LLVM's interactive channel knows nothing of them.
"""

from typing import Final

SITE_FEATURES: Final = (
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
    "call_hotness",
    "call_frequency",
    "call_loop_depth",
    "call_executions",
    "call_profile_share",
    "caller_entries",
    "callee_entries",
    "callee_executed",
    "program_callee_copies",
    "program_callee_bytes",
    "program_callee_calls",
    "program_callee_users",
    "program_callee_address_taken",
    "program_caller_copies",
    "program_caller_calls",
    "program_link_gc",
    "trial_calls",
    "trial_copied",
    "trial_instructions",
    "trial_bytes",
    "trial_saved",
    "trial_saved_permille",
    "caller_trial_bytes",
    "caller_trial_saved",
)
"""In the order of the log."""

SUMMARY_PREFIX: Final = "program_"
"""How the names of features begin that need a summary of the program."""

FREQUENCIES: Final = SITE_FEATURES[
    SITE_FEATURES.index("call_hotness") : SITE_FEATURES.index("callee_executed") + 1
]
"""Those that say how often code runs: what policies for speed go by, and not those for size."""

TRIALS: Final = SITE_FEATURES[SITE_FEATURES.index("trial_bytes") :]
"""Those that the compiler finds by compiling: 0 where no policy reads one."""
IN_CALLER: Final = SITE_FEATURES[SITE_FEATURES.index("caller_trial_bytes") :]
"""Of these, what is tried in one caller."""
