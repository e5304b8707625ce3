"""What inlining a call would save of a run, by a profile, and what it would cost of the code.

The same module is compiled twice, without its profile and with it, under the same answers. So each
call, and each copy that inlining makes of one, has the same key in both, and the second compile's
log says how often it ran.
"""

from typing import Final

import numpy as np
import numpy.typing as npt

from nestor.problem.benefit import Benefits
from nestor.problem.trajectory import F64, Trajectory
from nestor.problems.inlining_size.log import FAILED
from nestor.problems.inlining_speed.executed import (
    ARGUMENT,
    BYTES_OF_COST,
    CALL,
    LEAST_BYTES,
)

_SHARE: Final = "call_profile_share"
_BILLION: Final = 1e9
_THRESHOLD: Final = 225
"""Of ``cost_estimate``: what the stock heuristic inlines at -O2 where nothing speaks for or against
a call (``-inline-threshold``, llvm/lib/Analysis/InlineCost.cpp)."""


def benefits(trajectory: Trajectory, counted: Trajectory) -> Benefits:
    """Return what inlining each call of ``trajectory`` would save and cost.

    Calls of functions that the profile does not have are left out.

    A caller that grows beyond what the stock heuristic inlines is not inlined any more where it is
    called itself. What that would cost of the run is taken off the gain, which stays at least 0:
    once the caller has been inlined there, the call is asked about again, as a copy.

    :param counted: of the same module with a profile, under the same answers; the same trajectory
        where it has one.
    """
    shares: dict[int, float] = {}
    records = counted.decisions
    for site, share in zip(records["site"].tolist(), records[_SHARE].tolist(), strict=True):
        shares.setdefault(site, share)
    own = trajectory.decisions
    found = np.array([shares.get(site, -1) for site in own["site"].tolist()], np.float64)
    rows = np.flatnonzero((found >= 0) & (own["effect"] != FAILED))
    chosen = own[rows]
    calls = found[rows] / _BILLION
    arguments = chosen["callee_arguments"].astype(np.float64)
    size = np.maximum(LEAST_BYTES, BYTES_OF_COST * chosen["cost_estimate"].astype(np.float64))
    cost = np.where(chosen["callee_disappears"] > 0, LEAST_BYTES, size)
    gain = calls * (CALL + ARGUMENT * arguments)
    return Benefits(rows, np.maximum(0.0, gain - _lost(chosen, gain)), cost)


def _lost(sites: npt.NDArray[np.void], gain: F64) -> F64:
    """Return what is lost where the grown caller of each site is no longer inlined, ``[sites]``."""
    inlined = sites["inlining_default"] > 0
    into: dict[int, list[int]] = {}
    for row in np.flatnonzero(inlined).tolist():
        into.setdefault(int(sites["callee"][row]), []).append(row)
    size = sites["cost_estimate"].astype(np.float64)
    room = _THRESHOLD - size
    lost = np.zeros(len(sites))
    for row in np.flatnonzero(~inlined).tolist():
        own = into.get(int(sites["caller"][row]))
        if own is not None:
            lost[row] = gain[own][(room[own] >= 0) & (size[row] > room[own])].sum()
    return lost
