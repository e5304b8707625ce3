"""Networks without hidden layers, read as what they are: a sum with a term for each feature."""

from dataclasses import dataclass

import numpy as np

from nestor.policy.network import LogNormalisation, MlpPolicy
from nestor.policy.portfolio import PortfolioPolicy
from nestor.policy.spec import Policy


@dataclass(frozen=True)
class Sum:
    """A logit: the constant, and each feature's factor times its `network.squash`."""

    constant: float
    factors: dict[str, float]
    """The features that weigh most where the policy was trained come first."""

    def __str__(self) -> str:
        terms = [f"{factor:+.3f}·l({name})" for name, factor in self.factors.items()]
        return " ".join([f"{self.constant:+.3f}", *terms])


def as_sum(policy: Policy) -> Sum | None:
    """Return the policy's logit as a sum; None if it is none.

    It is the logit within the eight standard deviations at which the inputs are cut.
    """
    if not isinstance(policy, MlpPolicy) or len(policy.layers) > 1:
        return None
    normalisation, layer = policy.normalisation, policy.layers[0]
    if not isinstance(normalisation, LogNormalisation):
        return None
    # Two outputs are values of the two answers, and the logit is their difference.
    signs = np.array([1.0]) if len(layer.bias) == 1 else np.array([-1.0, 1.0])
    weights = signs @ layer.weight.astype(np.float64)
    factors = weights * normalisation.scale
    constant = float(signs @ layer.bias.astype(np.float64) - factors @ normalisation.shift)
    order = np.argsort(-np.abs(weights), kind="stable")
    return Sum(constant, {policy.features[i]: float(factors[i]) for i in order})


def as_sums(policy: Policy) -> list[Sum]:
    """Return the logit of the policy, or those of a portfolio's members; empty if no sums."""
    members = policy.members() if isinstance(policy, PortfolioPolicy) else (policy,)
    return [found for member in members if (found := as_sum(member)) is not None]
