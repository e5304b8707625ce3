"""Portfolios: several policies in one file, of which the compiler keeps the best by trials.

Which member is best for a function is known once the function has been compiled under each, so only
a compiler that can try them decides by a portfolio; there are no logits to compute outside of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from nestor.policy.layers import Layer, LayeredPolicy
from nestor.policy.network import MlpPolicy
from nestor.policy.spec import F64, PolicyError

MAX_MEMBERS: Final = 64


@dataclass(frozen=True, eq=False)
class PortfolioPolicy(LayeredPolicy):
    """A network whose outputs are the logits of its members."""

    KIND = "portfolio"

    def _check_outputs(self, outputs: int) -> None:
        if outputs > MAX_MEMBERS:
            raise PolicyError(f"it has more than {MAX_MEMBERS} members")

    def members(self) -> tuple[MlpPolicy, ...]:
        """The policies that the compiler tries, each with a row of the last layer."""
        last = self.layers[-1]
        meta = replace(self.metadata, kind="mlp")
        return tuple(
            MlpPolicy(
                meta,
                self.normalisation,
                (*self.layers[:-1], Layer(last.weight[k : k + 1], last.bias[k : k + 1])),
                range=self.range,
            )
            for k in range(len(last.bias))
        )

    def _logits(self, inputs: F64) -> F64:
        raise PolicyError("A portfolio is decided by trials in the compiler: it has no logits.")


def portfolio_of(members: Sequence[MlpPolicy], provenance: dict[str, object]) -> PortfolioPolicy:
    """Return the portfolio of policies without hidden layers that differ in their weights alone.

    :raises PolicyError: if there is none, if they differ in more than weights and provenance, or if
        one has hidden layers or two outputs.
    """
    if not members:
        raise PolicyError("a portfolio needs at least one member")
    first = members[0]
    for member in members:
        if len(member.layers) != 1 or len(member.layers[0].bias) != 1:
            raise PolicyError("members of a portfolio must be sums of features")
        if not _differ_in_weights_alone(first, member):
            raise PolicyError("members of a portfolio must differ in their weights alone")
    meta = replace(first.metadata, kind="portfolio", provenance=provenance)
    layer = Layer(
        np.concatenate([member.layers[0].weight for member in members]),
        np.concatenate([member.layers[0].bias for member in members]),
    )
    return PortfolioPolicy(meta, first.normalisation, (layer,), range=first.range)


def _differ_in_weights_alone(one: MlpPolicy, other: MlpPolicy) -> bool:
    """Whether only weights and provenance tell the two policies apart."""
    metas = [replace(policy.metadata, provenance={}) for policy in (one, other)]
    tensors = [
        {k: v for k, v in policy.tensors().items() if not k.startswith("layer.")}
        for policy in (one, other)
    ]
    return (
        metas[0] == metas[1]
        and tensors[0].keys() == tensors[1].keys()
        and all(np.array_equal(array, tensors[1][name]) for name, array in tensors[0].items())
    )
