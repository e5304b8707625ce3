"""What is known of a move of inlining for speed before it is built, and what it may save."""

from collections import Counter
from collections.abc import Mapping, Sequence
from importlib import resources
from pathlib import Path
from typing import Final

import numpy as np

from nestor.build.calls import Calls
from nestor.policy.boosting import Boosting
from nestor.policy.spec import F64
from nestor.problem.trajectory import Trajectory
from nestor.problems.inlining_size.search.sites import Site, sites_of
from nestor.problems.inlining_speed.executed import ARGUMENT, CALL, written_in
from nestor.tune.improvement import ExpectedImprovement
from nestor.tune.moves import Candidate, Evidence, Reach, features
from nestor.tune.state import Tried

_LOGGED: Final = (
    "inlining_default",
    "cost_estimate",
    "callee_disappears",
    "callee_is_local",
    "callee_call_uses",
    "calls_to_callee_in_caller",
    "callee_basic_block_count",
    "callee_instructions",
    "callee_loads",
    "callee_stores",
    "callee_calls",
    "callee_returns",
    "callee_allocas",
    "callee_may_throw",
    "caller_basic_block_count",
    "caller_instructions",
    "caller_calls",
    "call_arguments",
    "call_is_invoke",
    "call_frequency",
    "constant_args",
    "simplified_instructions",
    "sroa_savings",
)
"""Features of the log."""

FEATURES: Final = (
    "sites",  # two of a pair of moves, of which the first is described
    "to_inline",  # whether the call is kept now
    "copy",  # whether inlining made the site, as a copy of another
    "calls",  # of the site in the run, by its share of the calls between the two functions; parts
    # of what the run executes, as all that follow but the numbers of sites and the ratios
    "sites_between",  # that share those calls
    "caller",  # what the caller executes itself, its code included
    "callee",
    "reached",  # what all functions execute that the move can change
    "functions_reached",
    "caller_entries",
    "callee_entries",
    "executed_per_entry",  # of the callee, in operations
    "calls_per_entry",  # of the caller
    "share_of_callee",  # of the entries of the callee, the calls of the site
    "written_calls",  # where nothing is inlined, between where the call was written and the callee
    "written_per_entry",  # of the function in which the call was written
    "written_callee",  # entries of the callee then
    "tried",  # whether it was tried before, in another context, or the moves of a pair alone
    "found",  # the change then
    *_LOGGED,
)

EXPECTED: Final = ExpectedImprovement(
    problem="inlining-speed",
    features=FEATURES,
    most=1000.0,  # 1 % of what is executed
    boosting=Boosting(
        rounds=200,
        leaves=12,
        learning_rate=0.04,
        least_rows=20,
        objective="poisson",
        feature_fraction=0.4,
    ),
    path=Path(str(resources.files("nestor")))
    / "problems/inlining_speed/data/expected-improvement.safetensors",
)
"""Parts of 100,000 of the score that a move may be expected to save."""

UNKNOWN: Final = -1.0
"""Stands for what no run tells."""


def move_features(
    trajectories: Mapping[str, Trajectory],
    candidates: Sequence[Candidate],
    reach: Reach,
    evidence: Evidence,
    tried: Mapping[int, Tried],
) -> F64:
    """Return :data:`FEATURES` of each candidate, ``[candidates, features]``.

    :param evidence: of the build of ``trajectories``.
    :param tried: what earlier moves were found to do, by the move's identity.
    """
    weights = evidence.functions
    calls, written = evidence.calls or Calls(), evidence.written or Calls()
    total = sum(weights.values()) or 1.0
    every = sites_of(trajectories)
    between = Counter((site.caller, site.callee) for site in every if not site.answer)
    origins = written_in(trajectories)
    sites = [question for c in candidates for question in c.move.questions[:1]]
    found = np.zeros((len(candidates), len(FEATURES)))
    if not candidates:
        return found
    found[:, -len(_LOGGED) :] = features(trajectories, sites, _LOGGED)
    arguments = found[:, FEATURES.index("call_arguments")]
    for row, (candidate, site) in enumerate(zip(candidates, sites, strict=True)):
        assert isinstance(site, Site)
        edge = (site.caller, site.callee)
        sharing = between[edge] if not site.answer else 0
        number = calls.edges.get(edge, 0) / sharing if sharing else UNKNOWN
        entries = [float(calls.entries.get(function, UNKNOWN)) for function in edge]
        origin = origins.get(site.key.number, site.caller)
        there = float(written.edges.get((origin, site.callee), UNKNOWN))
        entered = float(written.entries.get(origin, UNKNOWN))
        alone = float(written.entries.get(site.callee, UNKNOWN))
        one = CALL + ARGUMENT * arguments[row]
        before = tried.get(candidate.move.identity)
        change = candidate.found if before is None else before.change
        found[row, : -len(_LOGGED)] = (
            len(candidate.move.questions),
            not site.answer,
            site.copy,
            number * one / total,
            sharing,
            weights.get(site.caller, 0.0) / total,
            weights.get(site.callee, 0.0) / total,
            sum(weights.get(function, 0.0) for function in candidate.claims) / total,
            len(candidate.claims),
            entries[0] / total,
            entries[1] / total,
            _ratio(weights.get(site.callee, 0.0), entries[1]),
            _ratio(number, entries[0]),
            _ratio(number, entries[1]),
            there * one / total,
            _ratio(there, entered),
            alone / total,
            change is not None,
            0.0 if change is None else change / total,
        )
    return found


def _ratio(part: float, whole: float) -> float:
    return part / whole if part >= 0 and whole > 0 else UNKNOWN
