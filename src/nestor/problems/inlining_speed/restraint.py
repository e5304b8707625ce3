"""Calls that a policy for speed does not inline though they run often: those in small callers.

The inliner goes bottom up. A small function is itself inlined where it is called, and the calls in
it are asked about again there. Inlining one of them before that makes the function too large to be
inlined, and what its callers lose is not in a profile of the call: voro++ got 9 % slower by that.
"""

from dataclasses import replace
from typing import Final

import numpy as np

from nestor.policy.spec import PolicyError
from nestor.policy.trees import TreesPolicy, weighted_sum
from nestor.problems.inlining_size.log import DEFAULT

_SMALL: Final = 45
"""Instructions of a caller up to which the stock heuristic inlines it nearly everywhere: at -O2 it
inlines what costs less than 225, and an instruction costs 5 (llvm/lib/Analysis/InlineCost.cpp)."""
_NEVER: Final = -1000.0


def leave_small_callers(policy: TreesPolicy) -> TreesPolicy:
    """Return ``policy`` with one more tree, which keeps it from inlining into small callers.

    :param policy: a policy of deviations from the default.
    :raises PolicyError: if it lacks a feature that says which callers those are.
    """
    names = (DEFAULT, "caller_call_uses", "caller_instructions")
    absent = [name for name in names if name not in policy.features]
    if absent:
        raise PolicyError(f"a policy for speed has to read {' and '.join(absent)}")
    default, uses, size = (policy.features.index(name) for name in names)
    # default says no? - called in this module? - small? - never
    tree = replace(
        policy,
        root=np.zeros(1, np.int32),
        feature=np.array([default, uses, -1, -1, size, -1, -1], np.int32),
        threshold=np.array([0.0, 0.0, 0.0, 0.0, _SMALL, 0.0, 0.0]),
        left=np.array([1, 3, 0, 0, 5, 0, 0], np.int32),
        right=np.array([2, 4, 0, 0, 6, 0, 0], np.int32),
        value=np.array([0.0, 0.0, 0.0, 0.0, 0.0, _NEVER, 0.0]),
        range=None,
    )
    return replace(weighted_sum([(policy, 1.0), (tree, 1.0)]), range=policy.range)
