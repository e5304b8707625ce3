"""The one call of a program, for policies under a bound that see the program's summary.

A function that one call in the whole program refers to, and nothing else, goes away when that call
is inlined, if the linker drops unused sections. LLVM knows this of local functions and inlines
them; of others a module cannot tell who else calls them, and the summary can. Both counts are
needed: the summary counts calls in the objects of the stock build, where several calls of a
function may have become one (in mujs 21 of ``cbinary``), and the module counts those that inlining
would have to copy it into.

The rule stands beside the policy, as units of the same network: without a summary the logits have
the same bits as before.
"""

from dataclasses import replace
from typing import Final

import numpy as np

from nestor.policy.network import Layer, LogNormalisation, MlpPolicy, squash
from nestor.policy.spec import F32, F64, PolicyError

_EXACTLY: Final = {
    "inlining_default": 0,
    "callee_uses": 1,
    "program_callee_calls": 1,
    "program_callee_address_taken": 0,
}
"""What must hold for the rule; each is a whole number."""
_LINK: Final = "program_link_gc"
"""At least 1 if the linker drops unused sections; -1 without a summary."""

_SURELY: Final = 4096.0
"""What a whole number too many or too few takes off, or being out of range: more than any logit."""
_INLINE: Final = 2.0**24
"""The logit of the rule: more than any logit and penalty of the policy."""


def inline_called_once(policy: MlpPolicy) -> MlpPolicy:
    """Return ``policy`` that also inlines where the callee has one call in the program.

    The policy's range keeps it from answering where a feature is outside of the training data.
    It becomes units too, so that it does not hold for the rule.

    :param policy: one of two layers and one output, such as
        :func:`nestor.problems.inlining_size.growth_bound.bound_growth` returns.
    :raises PolicyError: if it is another.
    """
    normalisation = policy.normalisation
    if (
        policy.metadata.answers != "deviation"
        or len(policy.layers) != 2
        or len(policy.layers[1].bias) != 1
        or not isinstance(normalisation, LogNormalisation)
    ):
        raise PolicyError("only a policy under a bound can have the rule for functions called once")
    new = [name for name in (*_EXACTLY, _LINK) if name not in policy.features]
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

    outside = [
        beyond(name, limit + sign / 2, sign)
        for name, limits in zip(policy.features, _ranges(policy), strict=True)
        for sign, limit in zip((-1, 1), limits, strict=True)
        if abs(limit) < 2.0**52
    ]
    against = [
        beyond(name, value + sign / 2, sign) for name, value in _EXACTLY.items() for sign in (-1, 1)
    ]
    against.append(beyond(_LINK, 0.5, -1))
    own, last = policy.layers
    wide = np.zeros((len(own.bias), len(features)), np.float32)
    wide[:, : len(policy.features)] = own.weight
    units = [*outside, *against]
    first = Layer(
        np.concatenate([wide, _rows([row for row, _ in units])]),
        np.concatenate([own.bias, np.array([bias for _, bias in units], np.float32)]),
    )
    hidden, count = len(own.bias), len(outside)
    # The policy's units pass; one unit more for its range, and one that is 1 where the rule holds.
    second = np.zeros((hidden + 2, len(first.bias)), np.float32)
    second[:hidden, :hidden] = np.eye(hidden)
    second[hidden, hidden : hidden + count] = 1
    second[hidden + 1, hidden + count :] = -1
    bias = np.zeros(hidden + 2, np.float32)
    bias[-1] = 1
    third = np.concatenate([last.weight[0], np.array([-1, _INLINE], np.float32)])
    provenance = {**policy.metadata.provenance, "called once": True}
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
