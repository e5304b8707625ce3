"""A policy that says which choice is fast before anything is measured.

It is a policy as all others of Nestor: rows of features to logits, one row per candidate, with the
rule *pick*. Its trees predict the logarithm of a candidate's time over the best of its payload; the
logit is the negative of that. They learn from a database of results.
"""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from nestor.errors import NestorError
from nestor.policy import bundle
from nestor.policy.spec import Policy
from nestor.policy.trees import TreesPolicy, from_lightgbm
from nestor.schedules.payload.loops import Loops
from nestor.schedules.target import Target
from nestor.schedules.tune.database import Key, Result
from nestor.schedules.tune.space import matrix, row

PROBLEM: Final = "schedule"
SLOW: Final = 1.0
"""The largest loss, also of a failure: beyond a factor of e over the best, a policy need not tell
how slow a choice is."""
PACKAGED: Final = Path(__file__).resolve().parents[1] / "data" / "first_guess.safetensors"
LEAST: Final = 8
"""Results that training needs."""

_SETTINGS: Final[dict[str, Any]] = {
    "objective": "regression", "learning_rate": 0.08, "num_leaves": 15, "min_data_in_leaf": 4,
    "feature_fraction": 0.25, "deterministic": True, "force_row_wise": True, "num_threads": 1,
    "verbose": -1, "zero_as_missing": False, "use_missing": False,
}  # fmt: skip
_ROUNDS: Final = 120
_MEMBERS: Final = 8
"""Boosters whose mean is the policy: one alone picks what it happens to take for fast."""


def train(results: Sequence[Result], seed: int) -> TreesPolicy:
    """Return a policy that has learned from results.

    :raises NestorError: if there are too few.
    """
    import lightgbm

    if len(results) < LEAST:
        raise NestorError(
            f"There are {len(results)} results to learn from, and {LEAST} are needed: tune some"
            " payloads first."
        )
    # An older Nestor wrote fewer features; its results teach nothing beside newer ones.
    names = max((sorted(r.features) for r in results), key=len)
    results = [r for r in results if sorted(r.features) == names]
    data = lightgbm.Dataset(
        matrix([r.features for r in results], names), -_losses_by_key(results),
        params={"verbose": -1},
    )  # fmt: skip
    provenance = {
        "learner": "lightgbm",
        "seed": seed,
        "results": len(results),
        "payloads": len({r.key.payload for r in results}),
        "llvm": sorted({r.key.llvm for r in results}),
        "cpu": sorted({r.key.cpu for r in results}),
    }
    members = [
        from_lightgbm(
            lightgbm.train(_SETTINGS | {"seed": _MEMBERS * seed + member}, data, _ROUNDS),
            names, "decision", provenance=provenance, problem=PROBLEM, rule="pick",
        )
        for member in range(_MEMBERS)
    ]  # fmt: skip
    return _mean(members)


def _mean(members: Sequence[TreesPolicy]) -> TreesPolicy:
    """Return the policy whose logits are the means of those of its members."""
    starts = np.cumsum([0, *(len(m.feature) for m in members)], dtype=np.int32)
    together: dict[str, Any] = {
        name: np.concatenate([getattr(m, name) for m in members])
        for name in ("feature", "threshold")
    }
    for name in ("left", "right"):
        together[name] = np.concatenate(
            [
                np.where(m.feature < 0, 0, getattr(m, name) + s)
                for m, s in zip(members, starts, strict=False)
            ]
        )
    root = np.concatenate([m.root + s for m, s in zip(members, starts, strict=False)])
    value = np.concatenate([m.value for m in members]) / len(members)
    return TreesPolicy(members[0].metadata, root=root, value=value, **together)


def packaged() -> Policy:
    """Return the policy that comes with Nestor, trained by ``benchmarks.schedule_record``."""
    return bundle.load(PACKAGED)


def scores(
    policy: Policy, choices: Sequence[Mapping[str, int]], loops: Loops, target: Target
) -> npt.NDArray[np.float64]:
    """Return a logit for each choice, higher is better.

    :raises NestorError: if the policy decides something else.
    """
    if policy.metadata.problem != PROBLEM:
        raise NestorError(f"The policy decides '{policy.metadata.problem}', not schedules.")
    rows = [row(choice, loops, target) for choice in choices]
    missing = set(policy.features) - set(rows[0]) if rows else set()
    if missing:
        raise NestorError(f"The policy reads '{min(missing)}', which no candidate has.")
    return policy.logits(matrix(rows, policy.features))


def losses(seconds: Sequence[float | None]) -> npt.NDArray[np.float64]:
    """Return the logarithm of each time over the best of them, at most ``SLOW``, as of failures."""
    best = min((s for s in seconds if s is not None), default=1.0)
    return np.array(
        [SLOW if s is None else min(SLOW, math.log(s / best)) for s in seconds], np.float64
    )


def _losses_by_key(results: Sequence[Result]) -> npt.NDArray[np.float64]:
    """Return the loss of each result among those of the same key."""
    places: dict[Key, list[int]] = {}
    for place, result in enumerate(results):
        places.setdefault(result.key, []).append(place)
    found = np.zeros(len(results))
    for some in places.values():
        found[some] = losses([results[p].evaluation.least for p in some])
    return found
