"""What is known of a move of inlining for size before it is built, and what it may save."""

from collections.abc import Mapping, Sequence
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Final

import numpy as np

from nestor.policy.boosting import Boosting
from nestor.policy.spec import F64
from nestor.problem.trajectory import Trajectory
from nestor.problems.inlining_size.search.components import LAST_CALL_BONUS
from nestor.problems.inlining_size.search.sites import Site
from nestor.tune.improvement import ExpectedImprovement
from nestor.tune.moves import Candidate, Reach, features
from nestor.tune.state import Tried

_LOGGED: Final = (
    "last_call_to_static_bonus",
    "inlining_default",
    "callee_uses",
    "calls_to_callee_in_caller",
    "program_callee_calls",
    "program_callee_users",
    "program_callee_address_taken",
    "callee_is_local",
    "callee_has_comdat",
    "callee_may_throw",
    "callee_basic_block_count",
    "callee_instructions",
    "callee_calls",
    "callee_returns",
    "callee_allocas",
    "caller_basic_block_count",
    "call_arguments",
    "call_is_invoke",
    "constant_args",
    "simplified_instructions",
    "sroa_savings",
)
"""Features of the log, each the mean over a move's sites."""

FEATURES: Final = (
    "kind",  # the numbers of _KINDS
    "sites",
    "to_inline",  # of the sites, those that are kept now
    "back_to_default",  # of the sites, those that do not have the default's answer now
    "last_calls",  # of the sites, those that are the only use of a local function
    "least_cost",
    "mean_cost",
    "most_cost",
    "bytes_reached",  # linked bytes of the functions that it claims
    "caller_bytes",  # of the callers and the functions that hold copies of them
    "callers",
    "callee_bytes",  # of the largest callee
    "believed",  # bytes that LLVM's costs say a combination of answers adds
    "units",  # modules that are compiled again
    "tried",  # whether it was tried before, in another context
    "found",  # the change then, in bytes
    *_LOGGED,
)

_KINDS: Final = {"site": 0, "callee": 1, "combination": 2, "pair": 3}
_MOST_FOUND: Final = 200.0

EXPECTED: Final = ExpectedImprovement(
    problem="inlining-size",
    features=FEATURES,
    most=200.0,  # bytes
    boosting=Boosting(
        rounds=200,
        leaves=12,
        learning_rate=0.04,
        least_rows=40,
        objective="poisson",
        feature_fraction=0.4,
    ),
    path=Path(str(resources.files("nestor")))
    / "problems/inlining_size/data/expected-improvement.safetensors",
)
"""Bytes that a move may be expected to save."""


def move_features(
    trajectories: Mapping[str, Trajectory],
    candidates: Sequence[Candidate],
    reach: Reach,
    functions: Mapping[int, float],
    tried: Mapping[int, Tried],
) -> F64:
    """Return :data:`FEATURES` of each candidate, ``[candidates, features]``.

    :param functions: the linked bytes of each function by id, of the build of ``trajectories``.
    :param tried: what earlier moves were found to do, by the move's identity.
    """
    members = [[q for q in c.move.questions if isinstance(q, Site)] for c in candidates]
    sites = list({site.key: site for own in members for site in own}.values())
    place = {site.key: number for number, site in enumerate(sites)}
    logged = features(trajectories, sites, _LOGGED)
    # LLVM takes the bonus off the cost: what the body comes to is the rest.
    bonus = logged[:, _LOGGED.index("last_call_to_static_bonus")] > 0
    cost = np.array([float(site.cost) for site in sites]) + LAST_CALL_BONUS * bonus

    @cache
    def holding(callers: frozenset[int]) -> tuple[float, int]:
        """Return the bytes and the number of the callers and of what holds copies of them."""
        own = frozenset[int]().union(*map(reach.above, callers))
        return _sum(functions, own), len(own)

    found = np.zeros((len(candidates), len(FEATURES)))
    for row, (candidate, own) in enumerate(zip(candidates, members, strict=True)):
        numbers = [place[site.key] for site in own]
        before = tried.get(candidate.move.identity)
        change = candidate.found if before is None else before.change
        found[row, : len(FEATURES) - len(_LOGGED)] = (
            _kind(candidate),
            len(own),
            sum(not site.answer for site in own),
            sum(site.answer != site.default for site in own),
            sum(site.last for site in own),
            *(_spread(cost[numbers]) if own else (0.0, 0.0, 0.0)),
            _sum(functions, candidate.claims),
            *holding(frozenset(site.caller for site in own)),
            max((functions.get(site.callee, 0.0) for site in own), default=0.0),
            _believed(candidate),
            len(candidate.units),
            change is not None,
            0.0 if change is None else min(max(change, -_MOST_FOUND), _MOST_FOUND),
        )
        if own:
            found[row, len(FEATURES) - len(_LOGGED) :] = logged[numbers].mean(axis=0)
    return found


def _kind(candidate: Candidate) -> int:
    move = candidate.move
    if move.part is not None:
        return _KINDS["combination"]
    if len(move.overrides) > 1:
        return _KINDS["pair"]
    return _KINDS["callee" if move.key.kind == "callee" else "site"]


def _believed(candidate: Candidate) -> float:
    both = candidate.combination
    return 0.0 if both is None else sum(both.terms.values()) - sum(both.now.values())


def _sum(functions: Mapping[int, float], own: frozenset[int]) -> float:
    return sum(functions.get(function, 0.0) for function in own)


def _spread(values: F64) -> tuple[float, float, float]:
    return float(values.min()), float(values.mean()), float(values.max())
