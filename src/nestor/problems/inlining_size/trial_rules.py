"""What trials of the compiler add to fitted trees: calls whose inlining was seen to save bytes.

Where a function goes away once its few calls are inlined, the plugin can compile its callers both
ways and count (``native/plugin/inlining/trials``). The trees know what such calls save on average;
of functions with two to five calls it hangs on what the optimiser makes of the copies, and no
feature says that. A trial is right about most calls, and wrong where callers are inlined
themselves or much else happens in them, so what it saves has to be worth something, in bytes and
in proportion to the functions.

The rule is one more tree whose value is beyond every sum of the others. It only adds calls that
the default and the trees keep, and the compiler tries nothing where the trees answer alone.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Final

import numpy as np

from nestor.policy.branches import one_tree
from nestor.policy.spec import F64, Bools, PolicyError
from nestor.policy.trees import TreesPolicy, reading, weighted_sum
from nestor.problems.inlining_size.summary_rules import INLINE, all_hold

SAVED: Final = "trial_saved"
PERMILLE: Final = "trial_saved_permille"
ALL_SAVED: Final = float(1 << 40)
"""More than any of the two."""
MOST_CALLS: Final = 8
MOST_COPIED: Final = 30
"""Instructions of the function in all calls but one."""
MOST_INSTRUCTIONS: Final = 600
"""Of the function and its callers."""


@dataclass(frozen=True)
class Worth:
    """What a trial must have saved for its calls to be inlined."""

    bytes: int
    permille: int
    """Of the bytes of the function and of its callers."""

    def __post_init__(self) -> None:
        if self.bytes < 1 or self.permille < 0:
            raise PolicyError("a trial must save at least 1 byte, and no less than nothing")


def inline_what_saves(policy: TreesPolicy, worth: Worth, *, with_summary: bool) -> TreesPolicy:
    """Return ``policy`` with the rule; elsewhere its answers are the same.

    :param with_summary: try only where there is a summary of the program. Otherwise local functions
        are tried in every compile, as a link by LTO wants it.
    :raises PolicyError: if the policy does not say where to deviate, or has the rule.
    """
    if policy.metadata.answers != "deviation" or "trials" in policy.metadata.provenance:
        raise PolicyError("only a policy that says where to deviate can have the rule, and once")
    wider = reading(policy, (SAVED, PERMILLE))
    needed = [("program_link_gc", 1, 2)] if with_summary else []
    holds = (
        ("inlining_default", 0, 0),
        *needed,
        (SAVED, worth.bytes, int(ALL_SAVED)),
        (PERMILLE, worth.permille, int(ALL_SAVED)),
    )
    rule = one_tree(wider, all_hold(holds, INLINE))
    provenance = {**policy.metadata.provenance, "trials": asdict(worth)}
    found = weighted_sum([(wider, 1.0), (rule, 1.0)])
    metadata = replace(wider.metadata, provenance=provenance)
    return replace(found, metadata=metadata, range=wider.range)


def may_be_tried(columns: Mapping[str, F64]) -> Bools:
    """Return of which questions the plugin may try the callee, as far as ``columns`` say, [n].

    These are the plugin's own conditions (``InliningTrials.cpp``), without those that only its look
    at every caller shows.

    :param columns: features of n questions, [n] each; without one its condition is left out.
    """
    (count,) = {len(column) for column in columns.values()}
    any_value = np.zeros(count)

    def of(name: str, otherwise: F64 = any_value) -> F64:
        return columns.get(name, otherwise)

    calls = of("callee_uses")
    only_here = (
        (of("program_callee_copies", any_value + 1) == 1)
        & (of("program_callee_users") == 0)
        & (of("program_callee_address_taken") == 0)
    )
    copied = (calls - 1) * of("callee_instructions")
    possible: Bools = (
        (only_here | (of("callee_is_local") == 1))
        & (of("callee_address_taken") == 0)
        & (calls <= MOST_CALLS)
        & (copied <= MOST_COPIED)
        & (of("callee_instructions") + of("caller_instructions") <= MOST_INSTRUCTIONS)
    )
    return possible
