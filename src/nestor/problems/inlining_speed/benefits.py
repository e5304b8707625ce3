"""What inlining a call would save of a run, by a profile, and what it would cost of the code.

The same module is compiled twice by the stock heuristic, without its profile and with it; a call
has the same key in both, and the second compile's log says how often it ran.
"""

from typing import Final

import numpy as np

from nestor.problem.benefit import Benefits
from nestor.problem.trajectory import Trajectory
from nestor.problems.inlining_size.log import FAILED
from nestor.problems.inlining_speed.executed import (
    ARGUMENT,
    BYTES_OF_COST,
    CALL,
    LEAST_BYTES,
)

_SHARE: Final = "call_profile_share"
_BILLION: Final = 1e9


def benefits(trajectory: Trajectory, counted: Trajectory) -> Benefits:
    """Return what inlining each call of ``trajectory`` would save and cost.

    Copies of calls, which inlining made, are left out: whoever answers the call that was written
    answers for them. So are calls of functions that the profile does not have.

    :param counted: of the same module with a profile; the same trajectory where it has one.
    """
    shares: dict[int, float] = {}
    records = counted.decisions
    for site, share in zip(records["site"].tolist(), records[_SHARE].tolist(), strict=True):
        shares.setdefault(site, share)
    own = trajectory.decisions
    found = np.array([shares.get(site, -1) for site in own["site"].tolist()], np.float64)
    used = (found >= 0) & (own["copy_of"] == 0) & (own["effect"] != FAILED)
    rows = np.flatnonzero(used)
    chosen = own[rows]
    calls = found[rows] / _BILLION
    arguments = chosen["callee_arguments"].astype(np.float64)
    size = np.maximum(LEAST_BYTES, BYTES_OF_COST * chosen["cost_estimate"].astype(np.float64))
    cost = np.where(chosen["callee_disappears"] > 0, LEAST_BYTES, size)
    return Benefits(rows, calls * (CALL + ARGUMENT * arguments), cost)
