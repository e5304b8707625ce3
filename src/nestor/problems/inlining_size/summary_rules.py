"""What a summary of the program adds to a policy under a bound of growth: two rules.

**The only copy.** The bound is there because other modules may hold copies of the callee. Where the
summary says that there is one copy in the program, nothing but calls refers to it and the linker
drops unused sections, the bound does not hold.

**The only call.** A function that one call in the whole program refers to, and nothing else, goes
away when that call is inlined. LLVM knows this of local functions and inlines them; of others a
module cannot tell who else calls them. Both counts are needed: the summary counts calls in the
objects of the stock build, where several calls of a function may have become one (in mujs 21 of
``cbinary``), and the module counts those that inlining would have to copy it into.

The rules are units of the same network: without a summary the logits have the same bits as before.
"""

import itertools
from dataclasses import replace
from typing import Final

import numpy as np

from nestor.policy.network import Layer, LogNormalisation, MlpPolicy, squash
from nestor.policy.spec import F32, F64, PolicyError
from nestor.problems.inlining_size.growth_bound import EXCESS

_ONLY_COPY: Final = {"program_callee_copies": 1, "program_callee_address_taken": 0}
_ONLY_CALL: Final = {
    "inlining_default": 0,
    "callee_uses": 1,
    "program_callee_calls": 1,
    "program_callee_address_taken": 0,
}
"""What must hold for each rule; all are whole numbers."""
_LINK: Final = "program_link_gc"
"""At least 1 if the linker drops unused sections; -1 without a summary."""

_SURELY: Final = 4096.0
"""What a whole number too many or too few takes off, or being out of range: more than any logit."""
_INLINE: Final = 2.0**24
"""The logit of the only call: more than any logit and penalty of the policy."""


def follow_summary(policy: MlpPolicy) -> MlpPolicy:
    """Return ``policy`` with both rules.

    The policy's range keeps it from answering where a feature is outside of the training data.
    It becomes units too, so that it does not hold for the only call.

    :param policy: what :func:`nestor.problems.inlining_size.growth_bound.bound_growth` returns.
    :raises PolicyError: if it is another.
    """
    normalisation = policy.normalisation
    if (
        policy.metadata.answers != "deviation"
        or "growth bound" not in policy.metadata.provenance
        or len(policy.layers) != 2
        or not isinstance(normalisation, LogNormalisation)
    ):
        raise PolicyError("only a policy under a bound can have the rules of a summary")
    new = [n for n in {**_ONLY_COPY, **_ONLY_CALL, _LINK: 1} if n not in policy.features]
    features = (*policy.features, *new)
    shift = np.concatenate([normalisation.shift, np.zeros(len(new))])
    scale = np.concatenate([normalisation.scale, np.ones(len(new))])

    def beyond(name: str, limit: float, sign: int) -> tuple[F64, float]:
        """Return a unit that is 0 up to a limit of a feature (down to it if ``sign`` is -1)."""
        index = features.index(name)
        if scale[index] == 0:
            raise PolicyError(f"the policy was trained where {name} never changed")
        row = np.zeros(len(features))
        row[index] = sign * _SURELY / scale[index]
        bound = float(squash(np.array([limit]))[0])
        return row, sign * _SURELY * (float(shift[index]) - bound)

    def violations(rule: dict[str, int]) -> list[tuple[F64, float]]:
        """Return units that are all 0 where the rule holds."""
        both = [(name, value, sign) for name, value in rule.items() for sign in (-1, 1)]
        exact = [beyond(name, value + sign / 2, sign) for name, value, sign in both]
        return [*exact, beyond(_LINK, 0.5, -1)]

    outside = [
        beyond(name, limit + sign / 2, sign)
        for name, limits in zip(policy.features, _ranges(policy), strict=True)
        for sign, limit in zip((-1, 1), limits, strict=True)
        if abs(limit) < 2.0**52
    ]
    copies, calls = violations(_ONLY_COPY), violations(_ONLY_CALL)
    own, last = policy.layers
    wide = np.zeros((len(own.bias), len(features)), np.float32)
    wide[:, : len(policy.features)] = own.weight
    units = [*outside, *copies, *calls]
    first = Layer(
        np.concatenate([wide, _rows([row for row, _ in units])]),
        np.concatenate([own.bias, np.array([bias for _, bias in units], np.float32)]),
    )
    # The policy's units pass; three more are sums of the new ones.
    hidden = len(own.bias)
    ends = np.cumsum([hidden, len(outside), len(copies), len(calls)])
    of_range, of_copies, of_calls = (slice(*pair) for pair in itertools.pairwise(ends))
    second = np.zeros((hidden + 3, len(first.bias)), np.float32)
    second[:hidden, :hidden] = np.eye(hidden)
    second[hidden, of_range] = 1
    # The excess over the bound where the callee has the only copy, which is given back; else 0.
    second[hidden + 1, EXCESS], second[hidden + 1, of_copies] = 1, -1
    second[hidden + 2, of_calls] = -1
    bias = np.zeros(hidden + 3, np.float32)
    bias[-1] = 1
    back = -last.weight[0, EXCESS][0]
    third = np.concatenate([last.weight[0], np.array([-1, back, _INLINE], np.float32)])
    provenance = {**policy.metadata.provenance, "summary rules": ["only copy", "only call"]}
    return MlpPolicy(
        replace(policy.metadata, features=features, provenance=provenance),
        LogNormalisation(shift, scale),
        (first, Layer(second, bias), Layer(third[None], last.bias)),
    )


def _ranges(policy: MlpPolicy) -> F64:
    """Return the least and the greatest value of each feature, ``[features, 2]``."""
    if policy.range is None:
        return np.tile(np.array([-(2.0**53), 2.0**53]), (len(policy.features), 1))
    return policy.range


def _rows(rows: list[F64]) -> F32:
    return np.stack(rows).astype(np.float32)
