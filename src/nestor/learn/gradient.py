"""Descend a loss of a network's logits: what all learners with gradients share.

The parameters are one flat f64 vector and the optimiser is :mod:`nestor.learn.adam`, so that a
state is arrays and can be kept; PyTorch gives the gradient.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from nestor.learn.adam import Moments, adam
from nestor.policy import network
from nestor.policy.network import MlpPolicy

if TYPE_CHECKING:
    from torch import Tensor

    from nestor.policy.network import Network

F64 = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Walk:
    """Where a descent stands."""

    updates: int
    parameters: F64
    moments: Moments

    @staticmethod
    def begin(policy: MlpPolicy) -> "Walk":
        """Begin at a policy's parameters."""
        parameters = policy.flatten_parameters().astype(np.float64)
        return Walk(0, parameters, Moments.zeros(len(parameters)))

    def policy(self, template: MlpPolicy) -> MlpPolicy:
        """Return ``template`` with these parameters."""
        return template.with_parameters(self.parameters.astype(np.float32))


def descend(
    template: MlpPolicy,
    walk: Walk,
    loss: "Callable[[Network], Tensor]",
    rate: float,
    *,
    clip: float = 1.0,
    epsilon: float = 1e-8,
) -> tuple[Walk, float]:
    """Take one step of Adam down ``loss``; return the next place and the loss before the step.

    :param loss: of the network with the parameters; its inputs are normalised features.
    :param clip: greatest Euclidean norm of the gradient that is believed.
    """
    import torch  # only a training run pays for its import

    torch.set_num_threads(1)  # sums in one order, whatever the machine
    net = network.to_torch(walk.policy(template))
    value = loss(net)
    value.backward()  # type: ignore[no-untyped-call]
    parts = [p.grad.reshape(-1) for p in net.parameters() if p.grad is not None]
    gradient = torch.cat(parts).numpy().astype(np.float64)
    norm = float(np.sqrt((gradient**2).sum()))
    if norm > clip:
        gradient *= clip / norm
    change, moments = adam(gradient, walk.moments, walk.updates, rate, epsilon=epsilon)
    return Walk(walk.updates + 1, walk.parameters + change, moments), float(value.detach())


def minibatches(rows: int, size: int, seed: list[int]) -> Iterator[npt.NDArray[np.int64]]:
    """Yield all rows once, in random order, at most ``size`` at a time."""
    order = np.random.default_rng(seed).permutation(rows)
    for start in range(0, rows, size):
        yield order[start : start + size]


def log_probabilities(logits: "Tensor", positive: "Tensor") -> "Tensor":
    """Return the logarithm of each action's probability: a coin of sigmoid(logit)."""
    import torch

    return torch.nn.functional.logsigmoid(torch.where(positive, logits, -logits))


def entropy(logits: "Tensor") -> "Tensor":
    """Return the mean entropy of the coins, in nats."""
    import torch

    return (torch.nn.functional.softplus(logits) - logits * torch.sigmoid(logits)).mean()
