"""What trials of the compiler add to fitted trees: calls whose inlining was seen to save bytes.

Where a function goes away once its few calls are inlined, the plugin can compile its callers both
ways and count (``native/plugin/inlining/trials``). The trees know what such calls save on average;
of functions with two to five calls it hangs on what the optimiser makes of the copies, and no
feature says that. A trial is right about most calls, and wrong where callers are inlined
themselves or much else happens in them, so what it saves has to be worth something, in bytes and
in proportion to the functions.

What the trees would inline, and can be tried, is kept where a trial says that it costs bytes.

Of functions with one call there is hardly a doubt: of 595 in training programs a trial said so of
575, and of the others all that cost more than twelve bytes had large callees or callers. So the
only call of a function that is not large is inlined without a trial, if it would not cost much more
than what goes away (:mod:`nestor.problems.inlining_size.summary_rules` says why).

The rule is one more tree whose values are beyond every sum of the others. Calls that the default
inlines are left to the trees.

Where the callee stays, a caller may shrink all the same when its calls are inlined, since an early
end of the callee folds there. Nine in ten of such calls in training programs were calls of small
functions with branches of which the trees expected a loss of at most 30 bytes, so only these are
tried: in their caller alone, and inlined if that shrinks.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Final

import numpy as np

from nestor.policy.branches import Split, one_tree
from nestor.policy.spec import F64, PolicyError
from nestor.policy.trees import TreesPolicy, reading, weighted_sum
from nestor.problems.inlining_size.summary_rules import INLINE, all_hold, in_proportion

CALLS: Final = "trial_calls"
COPIED: Final = "trial_copied"
INSTRUCTIONS: Final = "trial_instructions"
EXTENT: Final = (CALLS, COPIED, INSTRUCTIONS)
"""What there is to try: 0 where nothing can be."""
SAVED: Final = "trial_saved"
PERMILLE: Final = "trial_saved_permille"
SAVED_IN_CALLER: Final = "caller_trial_saved"
ALL_SAVED: Final = float(1 << 40)
"""More than any of the two."""
COSTS: Final = -(2.0**26)
"""What the rule takes off the logit where a trial costs bytes: less than another rule adds."""
_SURE: Final = (
    ("callee_uses", 1, 1),
    ("callee_instructions", 0, 200),
    ("caller_instructions", 0, 300),
    ("program_callee_bytes", 1, 1000),
)
"""Where inlining saves without a trial: features with their least and greatest values."""
_BRANCHES: Final = (
    ("callee_basic_block_count", 2, 1000),
    ("callee_calls", 0, 2),
    ("callee_instructions", 0, 30),
)
"""What holds of callees that make callers shrink though they stay."""
_BYTES: Final = (50, 100, 200, 400, 1000)
"""Of the callee, in the steps by which its cost is bounded."""


@dataclass(frozen=True)
class Limits:
    """Within which a function is tried.

    In training programs what trials find within the defaults is most of what they find at all, for
    less than half of the time (docs/studies/inlining-trials.md).
    """

    calls: int = 8
    copied: int = 30
    """Instructions of the function in all calls but one."""
    instructions: int = 600
    """Of the function and its callers."""

    def conditions(self) -> tuple[tuple[str, int, int], ...]:
        """Return what must hold: features with their least and greatest values."""
        return (
            (CALLS, 1, self.calls),
            (COPIED, 0, self.copied),
            (INSTRUCTIONS, 0, self.instructions),
        )


@dataclass(frozen=True)
class Worth:
    """What a trial must have saved for its calls to be inlined."""

    bytes: int
    permille: int
    """Of the bytes of the function and of its callers."""

    def __post_init__(self) -> None:
        if self.bytes < 1 or self.permille < 0:
            raise PolicyError("a trial must save at least 1 byte, and no less than nothing")


@dataclass(frozen=True)
class CallerTrials:
    """Calls that are tried in their caller alone, and what a trial must say of them."""

    saved: int = 4
    """Bytes that the caller must shrink by."""
    loss: float = 30.0
    """Bytes: the largest loss that the trees may expect of calls that are tried."""
    caller: int = 1000
    """The largest caller, in instructions."""


DEFAULT_LIMITS: Final = Limits()


def inline_what_saves(
    policy: TreesPolicy, worth: Worth, *, with_summary: bool, limits: Limits = DEFAULT_LIMITS
) -> TreesPolicy:
    """Return ``policy`` with the rule; elsewhere its answers are the same.

    :param with_summary: try only where there is a summary of the program; local functions alone
        where it says that the linker keeps what is not used. Otherwise local functions are tried in
        every compile, as a link by LTO wants it.
    :raises PolicyError: if the policy does not say where to deviate, or has the rule.
    """
    saves = ((SAVED, worth.bytes, int(ALL_SAVED)), (PERMILLE, worth.permille, int(ALL_SAVED)))
    node: Split | float = Split(SAVED, -0.5, COSTS, all_hold(saves, INLINE))
    if "program_callee_bytes" in policy.features:  # Inside LTO there is no summary to say it.
        node = all_hold(_SURE, in_proportion(_BYTES, INLINE, node), node)
    names = (*EXTENT, SAVED, PERMILLE)
    found = _ruled(policy, node, names, limits, with_summary=with_summary)
    provenance = {**policy.metadata.provenance, "trials": asdict(worth) | asdict(limits)}
    return replace(found, metadata=replace(found.metadata, provenance=provenance))


def inline_where_callers_shrink(policy: TreesPolicy, trials: CallerTrials) -> TreesPolicy:
    """Return ``policy`` with trials of calls in their caller alone, beside those it has.

    The rule is one more tree, whose value is what the trees may expect to lose.

    :raises PolicyError: if the policy does not say where to deviate, or has the rule.
    """
    if policy.metadata.answers != "deviation" or "caller trials" in policy.metadata.provenance:
        raise PolicyError("only a policy that says where to deviate can have the rule, and once")
    node = Split(SAVED_IN_CALLER, trials.saved - 0.5, 0.0, trials.loss)
    holds = [("inlining_default", 0, 0), *_BRANCHES, ("caller_instructions", 0, trials.caller)]
    wider = reading(policy, [SAVED_IN_CALLER])
    rule = one_tree(wider, all_hold(holds, node))
    found = replace(weighted_sum([(wider, 1.0), (rule, 1.0)]), range=wider.range)
    provenance = {**policy.metadata.provenance, "caller trials": asdict(trials)}
    return replace(found, metadata=replace(found.metadata, provenance=provenance))


def watch_trials(policy: TreesPolicy, *, with_summary: bool) -> TreesPolicy:
    """Return ``policy`` with trials whose results change no answer, so that a log has them.

    Calls that ``policy`` inlines are not tried. For the rest see :func:`inline_what_saves`.
    """
    node = all_hold(((SAVED, int(ALL_SAVED), int(ALL_SAVED)),), INLINE)
    return _ruled(policy, node, (*EXTENT, SAVED), DEFAULT_LIMITS, with_summary=with_summary)


def _ruled(
    policy: TreesPolicy,
    node: Split | float,
    names: Sequence[str],
    limits: Limits,
    *,
    with_summary: bool,
) -> TreesPolicy:
    """Return ``policy`` with ``node``, which reads ``names``, where the default keeps a call."""
    if policy.metadata.answers != "deviation" or "trials" in policy.metadata.provenance:
        raise PolicyError("only a policy that says where to deviate can have the rule, and once")
    wider = reading(policy, names)
    needed = [("program_link_gc", 0, 2)] if with_summary else []
    holds = [("inlining_default", 0, 0), *needed, *limits.conditions()]
    rule = one_tree(wider, all_hold(holds, node))
    return replace(weighted_sum([(wider, 1.0), (rule, 1.0)]), range=wider.range)


def expected_extent(columns: Mapping[str, F64]) -> dict[str, F64]:
    """Return the features of :data:`EXTENT` as far as others say, [n] each.

    The conditions are the plugin's own (``InliningTrials.cpp``), without those that only its look
    at every caller shows: of several callers one is counted.

    :param columns: features of n questions, [n] each; without one its condition is left out.
    """
    (count,) = {len(column) for column in columns.values()}
    any_value = np.zeros(count)

    def of(name: str, otherwise: F64 = any_value) -> F64:
        return columns.get(name, otherwise)

    only_here = (
        (of("program_link_gc", any_value + 1) >= 1)
        & (of("program_callee_copies", any_value + 1) == 1)
        & (of("program_callee_users") == 0)
        & (of("program_callee_address_taken") == 0)
    )
    possible = (only_here | (of("callee_is_local") == 1)) & (of("callee_address_taken") == 0)
    calls, own = of("callee_uses"), of("callee_instructions")
    values = (calls, (calls - 1) * own, own + of("caller_instructions"))
    return {name: np.where(possible, value, 0) for name, value in zip(EXTENT, values, strict=True)}
