"""Descend a loss of a network's logits; what all learners by gradient share.

The parameters are one flat f64 vector, so that a state is arrays and small steps are not lost to
rounding; the network that PyTorch differentiates has them rounded to f32, as policies have.
"""

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from nestor.learn.gradient.optimiser import OptimiserState, adam_step
from nestor.policy import network
from nestor.policy.network import MlpPolicy

if TYPE_CHECKING:
    from torch import Tensor

    from nestor.policy.network import Network

F32 = npt.NDArray[np.float32]
F64 = npt.NDArray[np.float64]
I64 = npt.NDArray[np.int64]


def begin(policy: MlpPolicy) -> OptimiserState:
    """Return the state of a descent that begins at the parameters of ``policy``."""
    return OptimiserState.begin(policy.flatten_parameters())


def policy_of(template: MlpPolicy, parameters: F64) -> MlpPolicy:
    """Return ``template`` with ``parameters``, rounded to f32."""
    return template.with_parameters(parameters.astype(np.float32))


def descend(
    template: MlpPolicy,
    state: OptimiserState,
    loss: "Callable[[Network], Tensor]",
    rate: float,
    *,
    clip: float = 1.0,
    epsilon: float = 1e-8,
) -> tuple[OptimiserState, float]:
    """Take one step of Adam down ``loss``.

    :param loss: of the network with the parameters; its inputs are normalised features.
    :param clip: greatest Euclidean norm of the gradient; a longer one is shortened to it.
    :return: the next state, and the loss before the step.
    """
    import torch  # only a training run needs it, and its import takes a second

    torch.set_num_threads(1)  # sums in one order, whatever the machine
    net = network.to_torch(policy_of(template, state.parameters))
    value = loss(net)
    value.backward()  # type: ignore[no-untyped-call]
    parts = [p.grad.reshape(-1) for p in net.parameters() if p.grad is not None]
    gradient = torch.cat(parts).numpy().astype(np.float64)
    norm = float(np.sqrt((gradient**2).sum()))
    if norm > clip:
        gradient *= clip / norm
    return adam_step(state, gradient, rate, epsilon), float(value.detach())


def logits_of(template: MlpPolicy, parameters: F64, inputs: "Tensor") -> "Tensor":
    """Return the logits of normalised features ``[rows, inputs]``, without a gradient."""
    import torch

    with torch.no_grad():
        logits: Tensor = network.to_torch(policy_of(template, parameters))(inputs)
    return logits


def minibatches(count: int, size: int, seed: list[int]) -> Iterator[I64]:
    """Yield the numbers below ``count`` once each, in random order, at most ``size`` at a time."""
    order = np.random.default_rng(seed).permutation(count)
    for start in range(0, count, size):
        yield order[start : start + size]
