"""Where a learned policy keeps to the default, since what one call seems to save misleads there.

That is known of policies learned from counts of calls (the learner ``profile``), and holds for
those distilled from searches by runs: without it all candidates made a program 10 % slower.

- Where the compiler has a profile itself, it has used the counts: nothing was gained on held-out
  programs, and expat got 1 % slower.
- Calls in small callers are not inlined against the default. The inliner goes bottom up: a small
  function is itself inlined where it is called, and the calls in it are asked about again there.
  Inlining one of them before that makes the function too large to be inlined, and what its callers
  lose is not in a profile of the call: voro++ got 9 % slower by that.
- Large callees are not either: one mistake would cost much code.
- Calls are not kept against the default where that saves hardly any code: of callees that are
  little larger than the call, and of those that the module emits only because of this one call.
"""

from dataclasses import replace
from typing import Final

from nestor.policy.branches import Split, one_tree
from nestor.policy.trees import TreesPolicy, weighted_sum
from nestor.problems.inlining_size.log import DEFAULT

_UNCOUNTED: Final = -2
_NO_PROFILE: Final = -1
"""Of ``call_profile_share``: the profile lacks the function, and the module has no profile."""
_SMALL: Final = 45
"""Instructions of a caller up to which the stock heuristic inlines it nearly everywhere: at -O2 it
inlines what costs less than 225, and an instruction costs 5 (llvm/lib/Analysis/InlineCost.cpp)."""
_LARGE: Final = 2000
"""Of ``cost_estimate``: some 400 instructions."""
_LITTLE: Final = 50
"""Of ``cost_estimate``: some ten instructions beyond the call."""
_NEVER: Final = -1000.0


def restrained(policy: TreesPolicy) -> TreesPolicy:
    """Return ``policy`` with one more tree, which keeps it to the default where it has to.

    :param policy: a policy of deviations from the default.
    :raises PolicyError: if it lacks a feature that says where that is.
    """
    small = Split("caller_call_uses", 0, 0.0, Split("caller_instructions", _SMALL, _NEVER, 0.0))
    one_call = Split("callee_is_discardable", 0, 0.0, Split("callee_call_uses", 1, _NEVER, 0.0))
    unprofiled = Split(
        DEFAULT,
        0,
        below=Split("cost_estimate", _LARGE, small, _NEVER),
        above=Split("cost_estimate", _LITTLE, _NEVER, one_call),
    )
    share = "call_profile_share"
    rule = Split(share, _NO_PROFILE, Split(share, _UNCOUNTED, _NEVER, unprofiled), _NEVER)
    whole = weighted_sum([(policy, 1.0), (one_tree(policy, rule), 1.0)])
    return replace(whole, range=policy.range)
