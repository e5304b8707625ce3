"""A bound on what a policy may add to the callers of a function, whatever other modules hold.

A module does not see how many others hold a copy of a COMDAT function. If there are many, inlining
it here hardly brings its end nearer, and what that adds to the caller stays: once in the program if
the caller is COMDAT itself, since its copies are merged too, and once for each module if the caller
is the module's own. And a function with other uses in the module ends only if all of them are
inlined. So there are three bounds on ``cost_estimate`` (LLVM's units, about five an instruction),
and beyond them the default decides.

Of a sum of features the bounds are two more units of a hidden layer, of trees one more tree: the
policy stays a file that every reader of policies evaluates. Trees that read a summary are bound
where there is none.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Final

import numpy as np

from nestor.policy.branches import NEVER, Split, one_tree
from nestor.policy.linear import as_sum
from nestor.policy.network import Layer, LogNormalisation, MlpPolicy, squash
from nestor.policy.spec import F64, PolicyError
from nestor.policy.trees import ANY_VALUE, TreesPolicy, weighted_sum

_COST: Final = "cost_estimate"
_DISCARDABLE: Final = "caller_is_discardable"
_LOCAL: Final = "caller_is_local"
_ONLY_USE: Final = "callee_disappears"
_FLAGS: Final = (_DISCARDABLE, _LOCAL, _ONLY_USE)
_COPIES: Final = "program_callee_copies"
"""Known with a summary only; the values of the features are whole numbers from 0 then."""

_SURELY: Final = 4096.0
"""What a unit of squashed cost beyond a bound takes off the logit: more than any logit."""
_NO_BOUND: Final = 64.0
"""More than any squashed cost."""


@dataclass(frozen=True)
class GrowthBound:
    """The greatest ``cost_estimate`` at which a policy may leave the default."""

    own: int
    """In callers that each module has for itself."""
    comdat: int
    """In COMDAT callers; at least ``own``."""
    several: int
    """Of callees that have other uses in the module, in any caller."""

    def __post_init__(self) -> None:
        if not 0 <= self.own <= self.comdat or self.several < 0:
            raise PolicyError("bounds must be at least 0, and that in COMDAT callers the larger")


def bound_growth(policy: MlpPolicy | TreesPolicy, bound: GrowthBound) -> MlpPolicy | TreesPolicy:
    """Return ``policy`` under ``bound``; within it the logits have the same bits.

    :raises PolicyError: if it is neither a sum of features (one layer, one output, logarithmic
        inputs) nor trees, or does not say where to deviate from the default.
    """
    if "growth bound" in policy.metadata.provenance:
        raise PolicyError("the policy is under a bound on growth already")
    if isinstance(policy, TreesPolicy):
        return _bound_trees(policy, bound)
    return _bound_sum(policy, bound)


def _bound_trees(policy: TreesPolicy, bound: GrowthBound) -> TreesPolicy:
    if policy.metadata.answers != "deviation":
        raise PolicyError("only a policy that says where to deviate can be bounded")

    def up_to(limit: int) -> Split:
        return Split(_COST, limit + 0.5, 0.0, NEVER)

    def by_caller(most: int) -> Split:
        own, comdat = up_to(min(bound.own, most)), up_to(min(bound.comdat, most))
        return Split(_DISCARDABLE, 0.5, own, Split(_LOCAL, 0.5, comdat, own))

    top = Split(_ONLY_USE, 0.5, by_caller(bound.several), by_caller(bound.comdat))
    if _COPIES in policy.features:
        top = Split(_COPIES, -0.5, top, 0.0)
    bounded = weighted_sum([(policy, 1.0), (one_tree(policy, top), 1.0)])
    provenance = {**policy.metadata.provenance, "growth bound": asdict(bound)}
    return replace(
        bounded, metadata=replace(policy.metadata, provenance=provenance), range=policy.range
    )


def _bound_sum(policy: MlpPolicy, bound: GrowthBound) -> MlpPolicy:
    normalisation = policy.normalisation
    if (
        policy.metadata.answers != "deviation"
        or len(policy.layers) != 1
        or len(policy.layers[0].bias) != 1
        or not isinstance(normalisation, LogNormalisation)
    ):
        raise PolicyError("only a sum of features that says where to deviate can be bounded")
    new = [name for name in (_COST, *_FLAGS) if name not in policy.features]
    features = (*policy.features, *new)
    shift = np.concatenate([normalisation.shift, np.zeros(len(new))])
    scale = np.concatenate([normalisation.scale, np.ones(len(new))])

    def unit(weights: Mapping[str, float], constant: float) -> tuple[F64, float]:
        """Return a unit's weights and bias from those of squashed features."""
        row = np.zeros(len(features))
        for name, weight in weights.items():
            index = features.index(name)
            if scale[index] == 0:
                raise PolicyError(f"the policy was trained where {name} never changed")
            row[index] = weight / scale[index]
            constant += weight * shift[index]
        return row, constant

    # Halfway to the next whole cost, where rounding does not matter.
    own, comdat, several = squash(np.array([bound.own, bound.comdat, bound.several]) + 0.5)
    higher = float(comdat - own)
    in_caller = unit({_COST: 1, _DISCARDABLE: -higher, _LOCAL: higher}, -float(own))
    of_callee = unit({_COST: 1, _ONLY_USE: -_NO_BOUND}, -float(several))
    (last,) = policy.layers
    sum_ = np.zeros(len(features), np.float32)
    sum_[: len(policy.features)] = last.weight[0]
    first = Layer(
        np.stack([sum_, -sum_, in_caller[0], of_callee[0]]).astype(np.float32),
        np.array([last.bias[0], -last.bias[0], in_caller[1], of_callee[1]], np.float32),
    )
    second = Layer(np.array([[1, -1, -_SURELY, -_SURELY]], np.float32), np.zeros(1, np.float32))
    origin = {"growth bound": asdict(bound), "sum": str(as_sum(policy))}
    provenance = {**policy.metadata.provenance, **origin}
    return MlpPolicy(
        replace(policy.metadata, features=features, provenance=provenance),
        LogNormalisation(shift, scale),
        (first, second),
        range=None if policy.range is None else _with_rows(policy.range, new),
    )


def _with_rows(own: F64, new: list[str]) -> F64:
    """Return the range ``own`` with rows for features of which it bounds nothing."""
    rows = [[-ANY_VALUE, ANY_VALUE] if name == _COST else [0.0, 1.0] for name in new]
    return np.concatenate([own, np.array(rows).reshape(-1, 2)])
